"""Tasks on natural numbers, written as little-endian digit strings.

Numbers are drawn and added digit by digit, so that no integer overflows;
products and roots are taken of Python's integers, in arrays of objects.
"""

import math

import numpy as np

from algorithmic.tasks import layout, task

# The shortest published question: a bit, a sign, a bit.
_FEWEST_SYMBOLS = 3


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


def value(bits: np.ndarray) -> np.ndarray:
  """The integers [b] of little-endian binary numbers [b w]."""
  powers = 1 << np.arange(bits.shape[1], dtype=object)
  return (bits == 1).astype(object) @ powers


def binary(values: np.ndarray, width: int) -> np.ndarray:
  """The little-endian bits [b width] of integers [b]."""
  bits = values[:, None] >> np.arange(width, dtype=object) & 1
  return bits.astype(np.int32)


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """The products [b w] of binary numbers, without leading zeros."""
  products = value(a) * value(b)
  lengths = np.array([max(1, n.bit_length()) for n in products])
  return layout.keep_first(binary(products, int(lengths.max())), lengths)


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
    total = self.result(a, b)
    return layout.complete(_given(a, b), total, total != layout.PAD)

  def result(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What is asked for."""
    return add(a, b, self.base)


class BinaryAddition(Fib):
  """Adds two little-endian binary numbers: `_ a _ b _ M..M E`.

  The second has exactly d bits, the first 1 to d. 2 + 7 = 9 is

  >>> print(BinaryAddition().example("01", "111"))
  _01_111_MMMME
  _01_111_1001E

  `published=True`, as in the Chomsky suite: both numbers and the sign between
  them have d symbols, at least 3, and leading zeros; masks do not reveal the
  length of the sum, which ends with a PAD, and what follows it is not counted.

  >>> print(BinaryAddition(published=True).example("01", "11"))
  _01_11_MMMMMME
  _01_11_101...E
  """

  name = "binary_addition"
  base = 2
  published: bool = False
  # How many masks there are besides the d of a published question.
  _more_masks = 1

  def sequence_length(self, digits: int) -> int:
    """a, b and the masks for the result, three delimiters, END."""
    if not self.published:
      return super().sequence_length(digits)
    digits = max(digits, _FEWEST_SYMBOLS)
    return 2 * digits + 3 + self._more_masks

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """Two numbers a and b."""
    if not self.published:
      return super().question(rng, digits)
    bits = np.maximum(digits, _FEWEST_SYMBOLS) - 1
    first = rng.integers(1, bits)
    a = layout.random_strings(rng, first, range(2))
    return a, layout.random_strings(rng, bits - first, range(2))

  def complete(
    self, a: np.ndarray, b: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """`_ a _ b _ M..M E` and `_ a _ b _ result E`."""
    if not self.published:
      return super().complete(a, b)
    bits = sum((x != layout.PAD).sum(axis=1) for x in (a, b))
    masks = bits + 1 + self._more_masks
    result = self.result(a, b)
    room = max(0, int(masks.max()) - result.shape[1])
    answer = np.pad(result, ((0, 0), (0, room)), constant_values=layout.PAD)
    unknown = np.arange(answer.shape[1]) < masks[:, None]
    return layout.complete(_given(a, b), answer, unknown)

  def counted(self, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Every mask; published: those of the result and of its end."""
    if not self.published:
      return super().counted(inputs, targets)
    return layout.until_pad(inputs, targets)


class BinaryMultiplication(BinaryAddition):
  """Multiplies two little-endian binary numbers: `_ a _ b _ M..M E`.

  Numbers, and `published`, as in `BinaryAddition`. 2 * 7 = 14 is

  >>> print(BinaryMultiplication().example("01", "111"))
  _01_111_MMMME
  _01_111_0111E
  """

  name = "binary_multiplication"
  _more_masks = 0

  def sequence_length(self, digits: int) -> int:
    """a, b and the masks for the result, three delimiters, END."""
    if self.published:
      return super().sequence_length(digits)
    product = 2 * digits if digits > 1 else 1
    return 2 * digits + product + 4

  def result(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product."""
    return multiply(a, b)


class SquareRoot(task.Task):
  """The square root of d bits, rounded down: `_ n _ M..M E`.

  Here the leading bit comes first, as in the Chomsky suite, and may be 0; the
  root of d bits has d / 2, rounded up. 37 has root 6:

  >>> print(SquareRoot().example("100101"))
  _100101_MMME
  _100101_110E
  """

  name = "square_root"

  def sequence_length(self, digits: int) -> int:
    """d bits, half as many masks, two delimiters, END."""
    return digits + -(-digits // 2) + 3

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """Random bits."""
    return (layout.random_strings(rng, digits, range(2)),)

  def complete(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_ n _ M..M E` and `_ n _ root E`."""
    # Padded at its end, a number is a multiple of the power that is 1 there.
    length = (number != layout.PAD).sum(axis=1)
    values = value(number[:, ::-1]) >> (number.shape[1] - length)
    roots = np.array([math.isqrt(n) for n in values], object)
    width = -(-length // 2)
    answer = binary(roots, int(width.max()))[:, ::-1]
    unknown = np.arange(answer.shape[1]) >= answer.shape[1] - width[:, None]
    bar = layout.DELIMITER
    given = layout.join(bar, number, bar)
    return layout.complete(given, answer, unknown)


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
    return layout.complete(_given(first, second), third, third != layout.PAD)


def _given(a, b):
  """`_ a _ b _`."""
  bar = layout.DELIMITER
  return layout.join(bar, a, bar, b, bar)
