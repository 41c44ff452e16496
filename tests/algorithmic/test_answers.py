"""Every task against a slow solver that reads the printed question."""

import itertools
import operator
import re

import numpy as np
import pytest

from algorithmic.tasks import groups, layout, registry

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


def duplicate_string(parts, d):
  return string_of("01", parts, d) * 2


def missing_duplicate(parts, d):
  (s,) = parts
  assert len(s) == 2 * d
  completions = [s.replace("?", bit) for bit in "01"]
  (answer,) = (c[s.index("?")] for c in completions if c[:d] == c[d:])
  return answer


def bracket_value(s):
  """The value of an expression, by recursion."""

  def value_and_end(i):
    if s[i] == "-":
      return -int(s[i + 1]), i + 2
    if s[i] != "(":
      return int(s[i]), i + 1
    value, i = value_and_end(i + 1)
    if s[i] != ")":
      act = {"+": operator.add, "-": operator.sub, "*": operator.mul}[s[i]]
      right, i = value_and_end(i + 1)
      value = act(value, right)
    assert s[i] == ")"
    return value, i + 1

  value, end = value_and_end(0)
  assert end == len(s)
  return value % 5


def bracket_arithmetic(parts, d):
  return str(bracket_value(string_of("01234+-*()", parts, d)))


def solve_equation(parts, d):
  left, value = parts[0].split("=")
  assert len(left) == d
  (answer,) = (
    x for x in "01234" if bracket_value(left.replace("x", x)) == int(value)
  )
  return answer


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


def binary_multiplication(parts, d):
  fib(parts, d, base=2)
  a, b = parts
  return little_endian(number(a, 2) * number(b, 2), 2)


def square_root(parts, d):
  n = int(string_of("01", parts, d), 2)
  root = next(r for r in range(int(n**0.5) + 1, -1, -1) if r * r <= n)
  return f"{root:0{(d + 1) // 2}b}"


def group(parts, d):
  """Five cards change places; letters number the orders of five places."""
  orders = list(itertools.permutations(range(5)))
  letters = [chr(c) for c in range(97, 0x400) if chr(c).islower()][:120]
  (s,) = parts
  assert len(s) == d
  cards = list(range(5))  # which card is at each place
  for letter in s:
    moved = dict(zip(orders[letters.index(letter)], cards, strict=True))
    cards = [moved[place] for place in range(5)]
  places = tuple(cards.index(card) for card in range(5))
  return letters[orders.index(places)]


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
    duplicate_string,
    missing_duplicate,
    bracket_arithmetic,
    solve_equation,
    binary_addition,
    binary_multiplication,
    square_root,
    group,
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
  assert {*SOLVERS, "recall"} == registry.TASKS.keys()


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


def test_published_odds_first_takes_the_other_half_first():
  task = registry.make_task("odds_first", published=True)
  assert task.example("0101110").splitlines()[1] == "_0101110_1110010E"


def test_published_even_pairs_has_the_other_answers():
  task = registry.make_task("even_pairs", published=True)
  assert task.example("00110").splitlines()[1] == "_00110_0E"
  assert task.example("0011").splitlines()[1] == "_0011_1E"


def test_bracket_arithmetic_has_products_if_told_so():
  task = registry.make_task("bracket_arithmetic", products=True)
  batch = task.sample(np.random.default_rng(0), np.resize(range(1, 61), 300))
  products = 0
  for row in range(300):
    given, completed = lines(task, batch, row)
    parts, _ = question_of("bracket_arithmetic", given)
    products += parts[0].count("*")
    assert completed == given.replace("M", str(bracket_value(parts[0])))
  assert products > 300


@pytest.mark.parametrize(
  ("name", "count"),
  [
    ("modular_arithmetic", lambda d: d if d % 2 else d - 1),
    ("missing_duplicate", lambda d: d - d % 2),
    ("solve_equation", lambda d: d),
  ],
)
def test_published_questions_have_d_symbols(name, count):
  task = registry.make_task(name, published=True)
  batch = task.sample(np.random.default_rng(0), np.resize(range(3, 61), 300))
  for row, d in enumerate(batch.digits):
    given, completed = lines(task, batch, row)
    ((question,), _) = question_of(name, given)
    assert len(question) == count(d)
    # What the solver calls d: numbers, bits of a copy, tokens before =.
    ours = {
      "modular_arithmetic": (len(question) + 1) // 2,
      "missing_duplicate": len(question) // 2,
      "solve_equation": len(question) - 2,
    }
    answer = SOLVERS[name]([question], ours[name])
    assert completed == given.replace("M", answer)


@pytest.mark.parametrize("name", ["Z2", "Z7", "S3", "A4", "A5"])
def test_products_of_a_group_so_far(name):
  task = registry.make_task("group", group=name, every=True)
  batch = task.sample(np.random.default_rng(0), np.resize(range(1, 61), 120))
  every = groups.elements(name)
  for row in range(120):
    first, *real = np.flatnonzero(batch.mask[row])
    assert batch.inputs[row, first] == layout.DELIMITER
    assert np.flatnonzero(batch.loss_mask[row]).tolist() == real
    places = list(range(len(every[0])))  # of each object
    tokens = batch.inputs[row, real], batch.targets[row, real]
    for element, product in zip(*tokens, strict=True):
      places = [every[element - 16][place] for place in places]
      assert every[product - 16] == tuple(places)


def test_groups_have_their_order_and_are_closed():
  orders = {"Z2": 2, "Z60": 60, "S3": 6, "S5": 120, "A4": 12, "A5": 60}
  for name, order in orders.items():
    table = groups.products(name)
    assert table.shape == (order, order)
    assert registry.make_task("group", group=name).vocab_size == 16 + order
    for line in (*table, *table.T):  # a Latin square: every element once
      assert sorted(line) == list(range(order))
    np.testing.assert_array_equal(table[0], np.arange(order))
  assert (groups.products("Z60") == groups.products("Z60").T).all()
  assert (groups.products("S3") != groups.products("S3").T).any()


@pytest.mark.parametrize("name", ["S6", "D4", "S", "Z1", "Z121"])
def test_unknown_or_large_groups_are_refused(name):
  with pytest.raises(ValueError, match=r"(group must be|has more than 120)"):
    registry.make_task("group", group=name)


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("digits", [range(1, 17), [60]])
def test_recall_finds_the_last_value_of_every_key(repeated, digits):
  task = registry.make_task("recall", repeated=repeated)
  batch = task.sample(np.random.default_rng(0), np.resize(digits, 200))
  renewed = 0
  for row, d in enumerate(batch.digits):
    given, completed = lines(task, batch, row)
    pairs, asked = given.split("_")
    assert len(pairs) == 2 * d
    memory = {}
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
      assert key.islower()
      assert value.isupper()
      renewed += key in memory
      memory[key] = value
    assert sorted(asked) == sorted(memory)
    assert len(memory) == ((d + 1) // 2 if repeated else d)
    assert completed == f"{pairs}_{''.join(memory[key] for key in asked)}"
    real = batch.mask[row]
    assert "".join(np.where(batch.loss_mask[row, real], "x", " ")) == (
      " " * (2 * d + 1) + "x" * len(asked)
    )
  assert (renewed > 0) == repeated


def test_recall_asks_in_another_order_and_any_key_comes_last():
  task = registry.make_task("recall", repeated=True, num_keys=8)
  batch = task.sample(np.random.default_rng(0), np.full(2000, 8), shift=False)
  last = np.bincount(batch.inputs[:, 14] - 16, minlength=8) / 2000
  np.testing.assert_allclose(last, 1 / 8, atol=0.03)
  same = (batch.inputs[:, 0] == batch.inputs[:, 17]).mean()
  assert 0.2 < same < 0.3  # four keys


def test_recall_needs_as_many_keys_as_it_asks_for():
  task = registry.make_task("recall", num_keys=8)
  with pytest.raises(ValueError, match="9 pairs need 9 keys; num_keys is 8"):
    task.sample(np.random.default_rng(0), np.array([3, 9]))
  with pytest.raises(ValueError, match=r"num_values must be in 2\.\.256, got"):
    registry.make_task("recall", num_values=1)


def published_sum(parts, d):
  return little_endian(sum(number(part, 2) for part in parts), 2), d + 1


def published_product(parts, d):
  return little_endian(number(parts[0], 2) * number(parts[1], 2), 2), d


def published_stack(parts, d):
  return stack_manipulation(parts, d).rstrip("."), d + 1


@pytest.mark.parametrize(
  ("name", "solve"),
  [
    ("binary_addition", published_sum),
    ("binary_multiplication", published_product),
    ("stack_manipulation", published_stack),
  ],
)
def test_published_answers_end_where_the_masks_do_not_tell(name, solve):
  task = registry.make_task(name, published=True)
  batch = task.sample(np.random.default_rng(0), np.resize(range(3, 61), 300))
  for row, d in enumerate(batch.digits):
    given, completed = lines(task, batch, row)
    parts, rest = question_of(name, given)
    if name != "stack_manipulation":
      assert sum(map(len, parts)) + 1 == d
    answer, masks = solve(parts, int(d))
    assert rest == "M" * masks + "E"
    assert completed.split("_")[-1] == answer.ljust(masks, ".") + "E"
    # The answer and one token that ends it.
    assert batch.loss_mask[row].sum() == len(answer) + 1
    assert batch.loss_mask[row, batch.mask[row]][-masks - 1]
