"""Whether a bit string changes its symbol an even number of times."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import layout, string_task


@dataclasses.dataclass(frozen=True)
class EvenPairs(string_task.VerdictTask):
  """Whether the pairs 01 and 10 in d bits are even in number: `_ s _ M E`.

  00110 has the pairs 01 and 10, two in all:

  >>> print(EvenPairs().example("00110"))
  _00110_ME
  _00110_1E
  """

  name: ClassVar[str] = "even_pairs"
  alphabet: ClassVar[range] = range(2)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """1 for an even number of changes, else 0."""
    left, right = string[:, :-1], string[:, 1:]
    changes = (left != right) & (right != layout.PAD)
    return 1 - changes.sum(axis=1, keepdims=True) % 2
