"""Reversal: completing a palindrome."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import string_task


@dataclasses.dataclass(frozen=True)
class Palin(string_task.StringTask):
  """Reverses d digits: `_ s _ M..M E`.

  >>> print(Palin().example("3307"))
  _3307_MMMME
  _3307_7033E
  """

  name: ClassVar[str] = "palin"

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The string backward."""
    return string[:, ::-1]
