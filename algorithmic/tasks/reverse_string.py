"""Reversal over two symbols."""

import dataclasses
from typing import ClassVar

from algorithmic.tasks import palin


@dataclasses.dataclass(frozen=True)
class ReverseString(palin.Palin):
  """Reverses d bits: `_ s _ M..M E`.

  >>> print(ReverseString().example("0011"))
  _0011_MMMME
  _0011_1100E
  """

  name: ClassVar[str] = "reverse_string"
  alphabet: ClassVar[range] = range(2)
