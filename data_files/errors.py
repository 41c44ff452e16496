"""The one error of this package."""

from nam_jax.training.errors import UserError


class DataError(UserError):
  """Something is wrong with a file; the message names it and what to do."""
