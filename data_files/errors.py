"""The error that this package raises."""

from nam_jax.training.errors import UserError


class DataError(UserError):
  """Something is wrong with a file; the message names it and what to do."""
