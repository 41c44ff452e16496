"""Tasks on arithmetic expressions in brackets, modulo 5: `_ s _ M E`.

Tokens 0..4 are numbers, 5, 6, 7 the operators + - *, 8 and 9 the brackets.
"""

import numpy as np

from algorithmic.tasks import layout, strings

OPEN, CLOSE = 8, 9
# Tokens of an equation, which has no products.
UNKNOWN, EQUALS = strings.TIMES, layout.SPARE


def random_expressions(
  rng: np.random.Generator, lengths: np.ndarray, operators: range
) -> np.ndarray:
  """Expressions [b w] of exactly `lengths[b]` tokens.

  One of 1 to 4 tokens is a number n, -n, (n) or (-n); a longer one is two
  expressions of random lengths, joined by an operator, in brackets.
  """
  numbers = range(strings.MODULUS)
  expressions = layout.random_strings(rng, lengths, numbers)
  row, start, length = np.arange(lengths.size), 0 * lengths, lengths
  while row.size:
    bracketed, end = length >= 3, start + length - 1
    expressions[row[bracketed], start[bracketed]] = OPEN
    expressions[row[bracketed], end[bracketed]] = CLOSE
    negated = (length == 2) | (length == 4)
    sign = (start + bracketed)[negated]
    expressions[row[negated], sign] = strings.MINUS
    split = length >= 5
    row, start, length = row[split], start[split], length[split]
    left = rng.integers(1, length - 3)
    chosen = rng.integers(operators.start, operators.stop, row.size)
    expressions[row, start + 1 + left] = chosen
    row = np.concatenate([row, row])
    start = np.concatenate([start + 1, start + 2 + left])
    length = np.concatenate([left, length - left - 3])
  return expressions


def evaluate(expressions: np.ndarray) -> np.ndarray:
  """Their values [b]; brackets decide what comes first."""
  b, width = expressions.shape
  rows, depth = np.arange(b), np.zeros(b, np.int32)
  # For each open bracket: the value so far, and what is done with the next.
  values = np.zeros((b, width + 2), np.int32)
  operators = np.full((b, width + 2), strings.PLUS, np.int32)
  # A sign follows no value, and its number follows at once.
  after_value, negated = np.zeros(b, bool), np.zeros(b, bool)
  for token in expressions.T:
    opens, closes = token == OPEN, token == CLOSE
    number = np.where(negated, -token, token)
    operand = np.where(closes, values[rows, depth], number)
    depth = depth + opens - closes
    values[rows[opens], depth[opens]] = 0
    operators[rows[opens], depth[opens]] = strings.PLUS
    known, operator = values[rows, depth], operators[rows, depth]
    result = np.select(
      [operator == strings.PLUS, operator == strings.MINUS],
      [known + operand, known - operand],
      known * operand,
    )
    is_value = closes | (token < strings.MODULUS)
    values[rows, depth] = np.where(is_value, result % strings.MODULUS, known)
    acts = (token >= strings.PLUS) & (token <= strings.TIMES)
    joins, negated = acts & after_value, acts & ~after_value
    operators[rows, depth] = np.where(joins, token, operator)
    after_value = is_value
  return values[:, 0]


class BracketArithmetic(strings.VerdictTask):
  """Evaluates an expression of d tokens in brackets, modulo 5: `_ s _ M E`.

  2 - (3 + 1) = -2 is

  >>> print(BracketArithmetic().example("(2-(3+1))"))
  _(2-(3+1))_ME
  _(2-(3+1))_3E

  `products=True` adds the operator *.
  """

  name = "bracket_arithmetic"
  symbols = "01234+-*()_.SEM?"
  products: bool = False

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """A random expression."""
    last = strings.TIMES if self.products else strings.MINUS
    return (random_expressions(rng, digits, range(strings.PLUS, last + 1)),)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The value of the expression."""
    return evaluate(string)[:, None]


class SolveEquation(strings.VerdictTask):
  """Finds x in an expression of d tokens with a value, modulo 5: `_ s _ M E`.

  Sums and differences only, so that there is one solution; tokens 7 and 15 are
  x and =. 2 - (x + 1) = 3 is solved by -2:

  >>> print(SolveEquation().example("(2-(x+1))=3"))
  _(2-(x+1))=3_ME
  _(2-(x+1))=3_3E

  `published=True`, as in the Chomsky suite: the whole equation has d tokens, at
  least 3.
  """

  name = "solve_equation"
  symbols = "01234+-x()_.SEM="
  published: bool = False

  def sequence_length(self, digits: int) -> int:
    """d tokens, = and the value, two delimiters, one answer, END."""
    return int(self.left_side(digits)) + 6

  def left_side(self, digits):
    """The tokens before =; of one number d, or of an array."""
    return np.maximum(1, digits - 2) if self.published else digits

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """A random expression, one of whose numbers is x, and its value."""
    operators = range(strings.PLUS, strings.MINUS + 1)
    digits = self.left_side(digits)
    left = random_expressions(rng, digits, operators)
    value = evaluate(left)[:, None]
    keys = np.where(left < strings.MODULUS, rng.random(left.shape), -1.0)
    left[np.arange(digits.size), np.argmax(keys, axis=1)] = UNKNOWN
    return (layout.join(left, EQUALS, value),)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The value is linear in x, with coefficient 1 or -1, its own inverse."""
    left, value = string[:, :-2], string[:, -1]
    at_0, at_1 = (evaluate(np.where(left == UNKNOWN, x, left)) for x in (0, 1))
    x = (value - at_0) * (at_1 - at_0)
    return x[:, None] % strings.MODULUS
