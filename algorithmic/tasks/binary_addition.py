"""Addition in base 2."""

import dataclasses
from typing import ClassVar

from algorithmic.tasks import fib


@dataclasses.dataclass(frozen=True)
class BinaryAddition(fib.Fib):
  """Adds two little-endian binary numbers: `_ a _ b _ M..M E`.

  The second has exactly d bits, the first 1 to d. 2 + 7 = 9 is

  >>> print(BinaryAddition().example("01", "111"))
  _01_111_MMMME
  _01_111_1001E
  """

  name: ClassVar[str] = "binary_addition"
  base: ClassVar[int] = 2
