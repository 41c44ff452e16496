"""Every task against a slow solver that reads the printed question."""

import re

import numpy as np
import pytest

from algorithmic.tasks import registry

# Each solver takes the parts between the delimiters and the number of digits,
# checks that the question is valid, and returns the answer as text.
# An answer shorter than the masks is padded with '.'.


def number(text, base=10):
  return int(text[::-1], base)


def little_endian(value, base=10):
  return (f"{value:b}" if base == 2 else str(value))[::-1]


def fib(parts, d, base=10):
  a, b = parts
  assert len(b) == d
  assert 1 <= len(a) <= d
  assert "0" not in (a[-1], b[-1])
  return little_endian(number(a, base) + number(b, base), base)


def progression(parts, d):
  x, y = parts
  assert len(x) == d
  assert x[-1] != "0"
  assert 1 <= number(y) - number(x) < 10**d
  return little_endian(2 * number(y) - number(x))


def string_of(alphabet, parts, d):
  (s,) = parts
  assert len(s) == d
  assert set(s) <= set(alphabet)
  return s


def palin(parts, d):
  return string_of("0123456789", parts, d)[::-1]


def reverse_string(parts, d):
  return string_of("01", parts, d)[::-1]


def copy(parts, d):
  return string_of("0123456789", parts, d)


def repeat_copy(parts, d):
  count, s = parts
  assert count in ("1", "2", "3")
  return string_of("0123456789", [s], d) * int(count)


def odds_first(parts, d):
  s = string_of("01", parts, d)
  return "".join(s[i] for i in range(0, d, 2)) + "".join(
    s[i] for i in range(1, d, 2)
  )


def bucket_sort(parts, d):
  return "".join(sorted(string_of("01234", parts, d)))


def parity(parts, d):
  return str(string_of("01", parts, d).count("1") % 2)


def even_pairs(parts, d):
  # The string changes an even number of times if it ends as it starts.
  s = string_of("01", parts, d)
  return "1" if s[0] == s[-1] else "0"


def cycle_navigation(parts, d):
  place = 0
  for move in string_of("=<>", parts, d):
    place += {"=": 0, ">": 1, "<": -1}[move]
  return str(place % 5)


def modular_arithmetic(parts, d):
  (s,) = parts
  assert re.fullmatch(rf"[0-4]([-+*][0-4]){{{d - 1}}}", s)
  total = 0
  for sign, product in re.findall(r"([-+]?)([0-4](?:\*[0-4])*)", s):
    value = 1
    for factor in product.split("*"):
      value *= int(factor)
    total += -value if sign == "-" else value
  return str(total % 5)


def reduce(parts, d):
  (s,) = parts
  assert len(s) == d
  assert s.isdigit()
  return s.replace("0", "").ljust(d, ".")


def dyck(parts, d):
  s = string_of("()[]{}<>", parts, d)
  opened = []
  for bracket in s:
    if bracket in "([{<":
      opened.append(bracket)
    else:
      assert opened.pop() + bracket in ("()", "[]", "{}", "<>")
  closers = [")]}>"["([{<".index(bracket)] for bracket in reversed(opened)]
  return "".join(closers).ljust(d, ".")


def stack_manipulation(parts, d):
  stack, actions = parts
  assert len(stack) + len(actions) == d
  assert len(actions) >= 1
  assert set(stack) <= set("01")
  contents = list(stack)
  for action in actions:
    if action == "^":
      contents = contents[:-1]
    else:
      contents.append({"0": "0", "1": "1"}[action])
  return "".join(reversed(contents)).ljust(d, ".")


def binary_addition(parts, d):
  return fib(parts, d, base=2)


SOLVERS = {
  solver.__name__: solver
  for solver in (
    fib,
    palin,
    reduce,
    copy,
    repeat_copy,
    progression,
    dyck,
    parity,
    even_pairs,
    modular_arithmetic,
    cycle_navigation,
    reverse_string,
    stack_manipulation,
    bucket_sort,
    odds_first,
    binary_addition,
  )
}


def lines(task, batch, row):
  """The real part of a sample, as printed; targets exactly as stored."""
  real = batch.mask[row]
  stored = (batch.inputs[row, real], batch.targets[row, real])
  return ["".join(task.symbols[t] for t in line) for line in stored]


def question_of(name, line):
  """The parts between the delimiters, and what follows them."""
  *parts, rest = line.split("_")
  if name == "reduce":
    assert set(rest) == {"M"}
  else:
    assert parts.pop(0) == ""
    assert re.fullmatch("M+E", rest)
  return parts, rest


def test_every_task_has_a_solver():
  assert SOLVERS.keys() == registry.TASKS.keys()


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("digits", [range(1, 17), range(1, 61), [60]])
def test_targets_are_what_the_solver_finds(name, digits):
  task = registry.make_task(name)
  rng = np.random.default_rng(len(digits))
  batch = task.sample(rng, np.resize(digits, 300))
  for row, d in enumerate(batch.digits):
    given, completed = lines(task, batch, row)
    parts, rest = question_of(name, given)
    answer = SOLVERS[name](parts, int(d))
    assert rest.count("M") == len(answer)
    assert completed == given.replace("M" * len(answer), answer), given


def test_reduce_counts_the_digits_of_the_target_if_told_so():
  task = registry.make_task("reduce", count="target")
  batch = task.sample(np.random.default_rng(0), np.resize(range(1, 61), 300))
  zeros = []
  for row, d in enumerate(batch.digits):
    given, completed = lines(task, batch, row)
    ((s,), rest) = question_of("reduce", given)
    answer = s.replace("0", "")
    assert len(answer) == d
    assert len(rest) == len(s) <= 3 * d
    assert completed == f"{s}_{answer.ljust(len(s), '.')}"
    zeros.append((len(s) - d) / d)
  assert abs(np.mean(zeros) - 1.0) < 0.05


def test_repeat_copy_repeats_up_to_its_field():
  task = registry.make_task("repeat_copy", max_repeats=9)
  batch = task.sample(np.random.default_rng(0), np.full(300, 2))
  counts = batch.inputs[np.arange(300), batch.mask.argmax(axis=1) + 1]
  assert set(counts) == set(range(1, 10))
  np.testing.assert_array_equal(batch.loss_mask.sum(axis=1), 2 * counts)
