"""Parity of a bit string."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import string_task


@dataclasses.dataclass(frozen=True)
class Parity(string_task.VerdictTask):
  """Whether d bits hold an odd number of ones: `_ s _ M E`.

  >>> print(Parity().example("10110"))
  _10110_ME
  _10110_1E
  """

  name: ClassVar[str] = "parity"
  alphabet: ClassVar[range] = range(2)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """1 for an odd number of ones, else 0."""
    return (string == 1).sum(axis=1, keepdims=True) % 2
