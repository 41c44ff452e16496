"""The one error of this package."""


class DataError(Exception):
  """Something is wrong with a file; the message names it and what to do."""
