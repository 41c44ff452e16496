"""Checks settings."""

from data_files.errors import DataError


def at_least(minimum: int, **values: int) -> None:
  """Raises DataError unless all values are integers of at least minimum."""
  for name, value in values.items():
    if type(value) is not int or value < minimum:
      raise DataError(
        f"{name} must be an integer of at least {minimum}, got {value!r}"
      )
