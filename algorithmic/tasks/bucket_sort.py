"""Sorting a string over five symbols."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import string_task


@dataclasses.dataclass(frozen=True)
class BucketSort(string_task.StringTask):
  """Sorts d symbols of 0..4: `_ s _ M..M E`.

  >>> print(BucketSort().example("41430"))
  _41430_MMMMME
  _41430_01344E
  """

  name: ClassVar[str] = "bucket_sort"
  alphabet: ClassVar[range] = range(5)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The sorted string; PAD is larger than any digit and stays last."""
    return np.sort(string, axis=1)
