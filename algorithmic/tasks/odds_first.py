"""Symbols in odd places first."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import string_task


@dataclasses.dataclass(frozen=True)
class OddsFirst(string_task.StringTask):
  """Of d bits, the 1st, 3rd, 5th..., then the 2nd, 4th...: `_ s _ M..M E`.

  >>> print(OddsFirst().example("01011"))
  _01011_MMMMME
  _01011_00111E
  """

  name: ClassVar[str] = "odds_first"
  alphabet: ClassVar[range] = range(2)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The odd places, counted from 1, then the even ones."""
    return np.concatenate([string[:, ::2], string[:, 1::2]], axis=1)
