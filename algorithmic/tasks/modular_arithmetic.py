"""The value of an expression modulo 5."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import layout, string_task

MODULUS = 5
PLUS, MINUS, TIMES = 5, 6, 7


@dataclasses.dataclass(frozen=True)
class ModularArithmetic(string_task.VerdictTask):
  """Evaluates d numbers of 0..4, joined by + - *, modulo 5: `_ s _ M E`.

  Products come before sums; tokens 5, 6, 7 are + - *. 1 + 2 * 4 - 3 = 6 is

  >>> print(ModularArithmetic().example("1+2*4-3"))
  _1+2*4-3_ME
  _1+2*4-3_1E
  """

  name: ClassVar[str] = "modular_arithmetic"
  symbols: ClassVar[str] = "01234+-*89_.SEM?"

  def sequence_length(self, digits: int) -> int:
    """d numbers, d - 1 operators, two delimiters, one answer, END."""
    return 2 * digits + 3

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """Numbers in the even columns, operators in the odd ones."""
    lengths = 2 * digits - 1
    expression = layout.random_strings(rng, lengths, range(MODULUS))
    shape = expression[:, 1::2].shape
    expression[:, 1::2] = rng.integers(PLUS, TIMES + 1, shape)
    return (layout.keep_first(expression, lengths),)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """Keeps the sum of finished products and the signed unfinished one."""
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
