"""Tasks whose question is one string: `_ s _ M..M E`, one mask per answer."""

import numpy as np

from algorithmic.tasks import layout, task

MODULUS = 5
# Tokens of the moves on a cycle, and of the operators.
STAY, FORWARD, BACK = 5, 6, 7
PLUS, MINUS, TIMES = 5, 6, 7
# The token of a gap.
MISSING = 2


class StringTask(task.Task):
  """d random symbols; a subclass defines the answer."""

  alphabet = range(10)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The answer [b v] to a string [b w], with PAD in unused columns."""
    raise NotImplementedError

  def sequence_length(self, digits: int) -> int:
    """Two strings of d symbols, two delimiters, END."""
    return 2 * digits + 3

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """A uniformly random string of the given length."""
    return (layout.random_strings(rng, digits, self.alphabet),)

  def complete(self, string: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_ s _ M..M E` and `_ s _ answer E`."""
    answer = self.answer(string)
    given = layout.join(layout.DELIMITER, string, layout.DELIMITER)
    return layout.complete(given, answer, answer != layout.PAD)


class VerdictTask(StringTask):
  """A string task whose answer is a single symbol."""

  def sequence_length(self, digits: int) -> int:
    """One string of d symbols, two delimiters, one answer, END."""
    return digits + 4


class Copy(StringTask):
  """Repeats d digits once: `_ s _ M..M E`.

  >>> print(Copy().example("3307"))
  _3307_MMMME
  _3307_3307E
  """

  name = "copy"

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The string itself."""
    return string


class Palin(StringTask):
  """Reverses d digits: `_ s _ M..M E`.

  >>> print(Palin().example("3307"))
  _3307_MMMME
  _3307_7033E
  """

  name = "palin"

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The string backward."""
    return string[:, ::-1]


class ReverseString(Palin):
  """Reverses d bits: `_ s _ M..M E`.

  >>> print(ReverseString().example("0011"))
  _0011_MMMME
  _0011_1100E
  """

  name = "reverse_string"
  alphabet = range(2)


class BucketSort(StringTask):
  """Sorts d symbols of 0..4: `_ s _ M..M E`.

  >>> print(BucketSort().example("41430"))
  _41430_MMMMME
  _41430_01344E
  """

  name = "bucket_sort"
  alphabet = range(5)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The sorted string; PAD is larger than any digit and stays last."""
    return np.sort(string, axis=1)


class OddsFirst(StringTask):
  """The 1st, 3rd, 5th... of d bits, then the 2nd, 4th...: `_ s _ M..M E`.

  >>> print(OddsFirst().example("01011"))
  _01011_MMMMME
  _01011_00111E

  `published=True`: the 2nd, 4th... come first, as in the code, though not in
  the text, of the Chomsky suite.
  """

  name = "odds_first"
  alphabet = range(2)
  published: bool = False

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The odd places, counted from 1, then the even ones."""
    halves = [string[:, ::2], string[:, 1::2]]
    return np.concatenate(halves[:: -1 if self.published else 1], axis=1)


class DuplicateString(StringTask):
  """Repeats d bits twice: `_ s _ M..M E`.

  >>> print(DuplicateString().example("0011"))
  _0011_MMMMMMMME
  _0011_00110011E
  """

  name = "duplicate_string"
  alphabet = range(2)

  def sequence_length(self, digits: int) -> int:
    """Three strings of d symbols, two delimiters, END."""
    return 3 * digits + 3

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The string and the string."""
    return np.tile(string, 2)


class Parity(VerdictTask):
  """Whether d bits hold an odd number of ones: `_ s _ M E`.

  >>> print(Parity().example("10110"))
  _10110_ME
  _10110_1E
  """

  name = "parity"
  alphabet = range(2)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """1 for an odd number of ones, else 0."""
    return (string == 1).sum(axis=1, keepdims=True) % 2


class EvenPairs(VerdictTask):
  """Whether d bits hold an even number of pairs 01 and 10: `_ s _ M E`.

  00110 has one pair 01 and one pair 10:

  >>> print(EvenPairs().example("00110"))
  _00110_ME
  _00110_1E

  `published=True`: 0 is the answer for an even number, as in the code of the
  Chomsky suite.
  """

  name = "even_pairs"
  alphabet = range(2)
  published: bool = False

  def answer(self, string: np.ndarray) -> np.ndarray:
    """Whether the number of changes is even; published: odd."""
    left, right = string[:, :-1], string[:, 1:]
    changes = (left != right) & (right != layout.PAD)
    return (changes.sum(axis=1, keepdims=True) + 1 - self.published) % 2


class MissingDuplicate(VerdictTask):
  """Finds the bit that is missing in d bits written twice: `_ s _ M E`.

  Token 2, shown as ?, stands for the missing one.

  >>> print(MissingDuplicate().example("01100?10"))
  _01100?10_ME
  _01100?10_1E

  `published=True`, as in the Chomsky suite: both copies together have d bits,
  one fewer if d is odd.
  """

  name = "missing_duplicate"
  symbols = "01?3456789_.SEM?"
  published: bool = False

  def sequence_length(self, digits: int) -> int:
    """Two strings of d symbols, two delimiters, one answer, END."""
    return 2 * int(self.once(digits)) + 4

  def once(self, digits):
    """The bits of one copy; of one number, or of an array."""
    return np.maximum(1, digits // 2) if self.published else digits

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """A string twice, with a gap at one of the 2d places."""
    digits = self.once(digits)
    once = layout.random_strings(rng, digits, range(2))
    twice = np.tile(once, 2)
    twice = layout.place(twice, twice != layout.PAD, 0, twice.shape[1])
    twice[np.arange(digits.size), rng.integers(0, 2 * digits)] = MISSING
    return (twice,)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """What stands half the string before or after the gap."""
    length = (string != layout.PAD).sum(axis=1, keepdims=True)
    place = np.argmax(string == MISSING, axis=1)[:, None]
    return np.take_along_axis(string, (place + length // 2) % length, axis=1)


class CycleNavigation(VerdictTask):
  """The place after d moves on a cycle of five, from place 0: `_ s _ M E`.

  Tokens 5, 6, 7 are the moves = (stay), > (forward), < (back).

  >>> print(CycleNavigation().example("<<=>"))
  _<<=>_ME
  _<<=>_4E
  """

  name = "cycle_navigation"
  symbols = "01234=><89_.SEM?"
  alphabet = range(STAY, BACK + 1)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """Moves forward minus moves back, modulo 5."""
    moves = (string == FORWARD).astype(np.int32) - (string == BACK)
    return moves.sum(axis=1, keepdims=True) % MODULUS


class ModularArithmetic(VerdictTask):
  """Evaluates d numbers in 0..4, joined by + - *, modulo 5: `_ s _ M E`.

  Products come before sums; tokens 5, 6, 7 are + - *. 1 + 2 * 4 - 3 = 6 is

  >>> print(ModularArithmetic().example("1+2*4-3"))
  _1+2*4-3_ME
  _1+2*4-3_1E

  `published=True`, as in the Chomsky suite: numbers and operators together are
  d symbols, one fewer if d is even.
  """

  name = "modular_arithmetic"
  symbols = "01234+-*89_.SEM?"
  published: bool = False

  def sequence_length(self, digits: int) -> int:
    """d numbers, d - 1 operators, two delimiters, one answer, END."""
    return self.num_symbols(digits) + 4

  def num_symbols(self, digits):
    """Numbers and operators; of one number d, or of an array."""
    return digits - 1 + digits % 2 if self.published else 2 * digits - 1

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """Numbers in the even columns, operators in the odd ones."""
    lengths = self.num_symbols(digits)
    expression = layout.random_strings(rng, lengths, range(MODULUS))
    shape = expression[:, 1::2].shape
    expression[:, 1::2] = rng.integers(PLUS, TIMES + 1, shape)
    return (layout.keep_first(expression, lengths),)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """Tracks the sum of finished products and the signed unfinished one."""
    total, term = np.zeros(len(string), np.int32), string[:, 0]
    for column in range(1, string.shape[1], 2):
      operator, number = string[:, column], string[:, column + 1]
      total = np.where(np.isin(operator, (PLUS, MINUS)), total + term, total)
      term = np.select(
        [operator == PLUS, operator == MINUS, operator == TIMES],
        [number, -number, term * number % MODULUS],
        term,
      )
    return (total + term)[:, None] % MODULUS
