"""ListOps expressions as text, read differently from the library."""

import statistics

FUNCTIONS = {
  "[MIN": min,
  "[MAX": max,
  "[MED": lambda values: int(statistics.median(values)),
  "[SM": lambda values: sum(values) % 10,
}


def words(source: str) -> list[str]:
  """The words without parentheses."""
  return [word for word in source.split() if word not in "()"]


def value(source: str) -> int:
  """The value of an expression, from its parentheses alone.

  "( f x )" adds the argument x to f, and "( f ] )" works it out.
  """
  stack = []
  for word in source.split():
    if word != ")":
      stack.append(int(word) if word.isdigit() else word)
      continue
    begun, argument = stack[-2:]
    assert stack[-3] == "("
    if argument == "]":
      result = FUNCTIONS[begun[0]](begun[1:])
    elif isinstance(begun, str):
      result = (begun, argument)
    else:
      result = (*begun, argument)
    stack[-3:] = [result]
  (result,) = stack
  return result
