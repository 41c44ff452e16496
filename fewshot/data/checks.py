"""Checks of settings."""

from data_files.errors import DataError


def at_least(minimum: int, **values: int) -> None:
  """Raises a DataError unless all values are integers from minimum on."""
  for name, value in values.items():
    if type(value) is not int or value < minimum:
      raise DataError(
        f"expected {name} as an integer from {minimum} on, got {value!r}"
      )
