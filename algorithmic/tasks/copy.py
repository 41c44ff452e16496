"""Copying a string."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import string_task


@dataclasses.dataclass(frozen=True)
class Copy(string_task.StringTask):
  """Repeats d digits once: `_ s _ M..M E`.

  >>> print(Copy().example("3307"))
  _3307_MMMME
  _3307_3307E
  """

  name: ClassVar[str] = "copy"

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The string itself."""
    return string
