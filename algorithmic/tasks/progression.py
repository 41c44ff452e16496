"""The next term of an arithmetic progression."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import arithmetic, layout, task


@dataclasses.dataclass(frozen=True)
class Progression(task.Task):
  """Continues two terms by a third: `_ x _ x+k _ M..M E`, answer x+2k.

  The first term x has exactly d digits, the difference k, which is not given,
  1 to d; all are little-endian. From 75 and 83 follows 91 (k = 8):

  >>> print(Progression().example("57", "8"))
  _57_38_MME
  _57_38_19E
  """

  name: ClassVar[str] = "progression"

  def sequence_length(self, digits: int) -> int:
    """Three terms, two with one digit more, three delimiters, END."""
    return 3 * digits + 6

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """The first term and the difference."""
    first = arithmetic.random_numbers(rng, digits, 10)
    shorter = rng.integers(1, digits + 1)
    return first, arithmetic.random_numbers(rng, shorter, 10)

  def complete(
    self, first: np.ndarray, difference: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """`_ x _ x+k _ M..M E` and `_ x _ x+k _ x+2k E`."""
    second = arithmetic.add(first, difference, 10)
    third = arithmetic.add(second, difference, 10)
    bar = layout.DELIMITER
    given = layout.join(bar, first, bar, second, bar)
    return layout.complete(given, third, third != layout.PAD)
