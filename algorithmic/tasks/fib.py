"""Addition of two numbers, the step of the Fibonacci sequence."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import arithmetic, layout, task


@dataclasses.dataclass(frozen=True)
class Fib(task.Task):
  """Adds two little-endian numbers: `_ a _ b _ M..M E`.

  The second has exactly d digits, the first 1 to d; the sum is as long as it
  needs. 12 + 989 = 1001 is

  >>> print(Fib().example("21", "989"))
  _21_989_MMMME
  _21_989_1001E
  """

  name: ClassVar[str] = "fib"
  base: ClassVar[int] = 10

  def sequence_length(self, digits: int) -> int:
    """a, b, a sum with one digit more, three delimiters, END."""
    return 3 * digits + 5

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """Two numbers a and b."""
    shorter = rng.integers(1, digits + 1)
    a = arithmetic.random_numbers(rng, shorter, self.base)
    return a, arithmetic.random_numbers(rng, digits, self.base)

  def complete(
    self, a: np.ndarray, b: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """`_ a _ b _ M..M E` and `_ a _ b _ (a+b) E`."""
    total = arithmetic.add(a, b, self.base)
    bar = layout.DELIMITER
    given = layout.join(bar, a, bar, b, bar)
    return layout.complete(given, total, total != layout.PAD)
