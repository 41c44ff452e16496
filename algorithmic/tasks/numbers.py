"""Tasks on natural numbers, written as little-endian digit strings.

Numbers are drawn and added digit by digit, so that no integer overflows.
"""

import numpy as np

from algorithmic.tasks import layout, task


def random_numbers(
  rng: np.random.Generator, lengths: np.ndarray, base: int
) -> np.ndarray:
  """Numbers [b w] of exactly `lengths[b]` digits: the leading one is not 0."""
  numbers = layout.random_strings(rng, lengths, range(base))
  leading = rng.integers(1, base, lengths.size)
  numbers[np.arange(lengths.size), lengths - 1] = leading
  return numbers


def add(a: np.ndarray, b: np.ndarray, base: int) -> np.ndarray:
  """The sums [b w+1] of two batches of numbers, without leading zeros."""
  width = max(a.shape[1], b.shape[1]) + 1
  total = np.zeros((len(a), width), np.int32)
  for number in (a, b):
    total[:, : number.shape[1]] += np.where(number == layout.PAD, 0, number)
  for column in range(width - 1):
    total[:, column + 1] += total[:, column] // base
    total[:, column] %= base
  # A digit counts if it or a more significant one is not 0.
  counts = np.maximum.accumulate(total[:, ::-1] != 0, axis=1)[:, ::-1]
  counts[:, 0] = True
  return np.where(counts, total, layout.PAD)


class Fib(task.Task):
  """Adds two little-endian numbers: `_ a _ b _ M..M E`.

  The second has exactly d digits, the first 1 to d; the sum is as long as it
  needs to be. 12 + 989 = 1001 is

  >>> print(Fib().example("21", "989"))
  _21_989_MMMME
  _21_989_1001E
  """

  name = "fib"
  base = 10

  def sequence_length(self, digits: int) -> int:
    """a, b, a sum with one digit more, three delimiters, END."""
    return 3 * digits + 5

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """Two numbers a and b."""
    shorter = rng.integers(1, digits + 1)
    a = random_numbers(rng, shorter, self.base)
    return a, random_numbers(rng, digits, self.base)

  def complete(
    self, a: np.ndarray, b: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """`_ a _ b _ M..M E` and `_ a _ b _ (a+b) E`."""
    total = add(a, b, self.base)
    bar = layout.DELIMITER
    given = layout.join(bar, a, bar, b, bar)
    return layout.complete(given, total, total != layout.PAD)


class BinaryAddition(Fib):
  """Adds two little-endian binary numbers: `_ a _ b _ M..M E`.

  The second has exactly d bits, the first 1 to d. 2 + 7 = 9 is

  >>> print(BinaryAddition().example("01", "111"))
  _01_111_MMMME
  _01_111_1001E
  """

  name = "binary_addition"
  base = 2


class Progression(task.Task):
  """Continues two terms with a third: `_ x _ x+k _ M..M E`, answer x+2k.

  The first term x has exactly d digits, the difference k, which is not given,
  1 to d; all are little-endian. After 75 and 83 comes 91 (k = 8):

  >>> print(Progression().example("57", "8"))
  _57_38_MME
  _57_38_19E
  """

  name = "progression"

  def sequence_length(self, digits: int) -> int:
    """Three terms, two with one digit more, three delimiters, END."""
    return 3 * digits + 6

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """The first term and the difference."""
    first = random_numbers(rng, digits, 10)
    shorter = rng.integers(1, digits + 1)
    return first, random_numbers(rng, shorter, 10)

  def complete(
    self, first: np.ndarray, difference: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """`_ x _ x+k _ M..M E` and `_ x _ x+k _ x+2k E`."""
    second = add(first, difference, 10)
    third = add(second, difference, 10)
    bar = layout.DELIMITER
    given = layout.join(bar, first, bar, second, bar)
    return layout.complete(given, third, third != layout.PAD)
