"""How much one file may unpack to: a few kilobytes can hold terabytes."""

import os

from data_files.errors import DataError

VARIABLE = "NAM_MAX_UNPACKED_BYTES"
_DEFAULT = 1 << 30


class Allowance:
  """The bytes that a file may still unpack to."""

  def __init__(self, packed: int):
    """Allows what $NAM_MAX_UNPACKED_BYTES says, 1 GiB by default.

    Args:
      packed: size of the file, which it may always unpack to.
    """
    chosen = os.environ.get(VARIABLE) or str(_DEFAULT)
    if not (chosen.isascii() and chosen.isdigit() and len(chosen) < 20):
      raise DataError(f"{VARIABLE}={chosen:.40}: expected a number of bytes")
    self._most = self.left = max(int(chosen), packed)

  def take(self, count: int) -> None:
    """Uses some of them; raises DataError if there are not as many left."""
    self.left -= count
    if self.left < 0:
      raise DataError(
        f"it unpacks to more than {self._most:,} bytes; if you trust it, set"
        f" {VARIABLE} to a larger number"
      )
