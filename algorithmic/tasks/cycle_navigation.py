"""Walking on a cycle of five places."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import string_task

STAY, FORWARD, BACK = 5, 6, 7


@dataclasses.dataclass(frozen=True)
class CycleNavigation(string_task.VerdictTask):
  """The place after d moves on a cycle of five, from place 0: `_ s _ M E`.

  Tokens 5, 6, 7 are the moves = (stay), > (forward), < (back).

  >>> print(CycleNavigation().example("<<=>"))
  _<<=>_ME
  _<<=>_4E
  """

  name: ClassVar[str] = "cycle_navigation"
  symbols: ClassVar[str] = "01234=><89_.SEM?"
  alphabet: ClassVar[range] = range(STAY, BACK + 1)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """Moves forward less moves back, modulo 5."""
    moves = (string == FORWARD).astype(np.int32) - (string == BACK)
    return moves.sum(axis=1, keepdims=True) % 5
