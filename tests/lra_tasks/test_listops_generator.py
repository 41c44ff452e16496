"""Drawn expressions: their distribution, their values, their files."""

import hashlib
import random

import numpy as np
import pytest

from lra_tasks import listops_generator, listops_trees
from tests.lra_tasks import listops_text

SHORT = {
  "max_length": 40,
  "min_length": 8,
  "num_train": 150,
  "num_validation": 20,
  "num_test": 30,
}
ONE_EACH = {"num_train": 1, "num_validation": 1, "num_test": 1}


def generate(**settings):
  return listops_trees.generate(listops_trees.Settings(**SHORT | settings))


@pytest.fixture(scope="module")
def long_expressions():
  """3000 expressions of the benchmark's sizes."""
  settings = listops_trees.Settings(**ONE_EACH | {"num_train": 2998})
  return listops_trees.generate(settings)["train"]


def test_lengths_are_those_of_the_benchmark(long_expressions):
  lengths = np.diff(long_expressions.offsets)
  assert 500 < lengths.min() < 510
  assert 1950 < lengths.max() < 2000
  assert 930 < np.median(lengths) < 985
  assert 1015 < lengths.mean() < 1060


def test_labels_and_roots_are_those_of_the_benchmark(long_expressions):
  labels = np.bincount(long_expressions.labels) / 2998
  assert (abs(labels[[0, 9]] - 0.17) < 0.025).all()
  assert (abs(labels[1:9] - 0.0825) < 0.03).all()
  roots = long_expressions.tokens[long_expressions.offsets[:-1]]
  operators, counts = np.unique(roots, return_counts=True)
  assert [listops_trees.WORDS[i] for i in operators] == [
    "[MIN",
    "[MAX",
    "[MED",
    "[SM",
  ]
  assert (abs(counts / 2998 - 0.25) < 0.03).all()


def lengths_by_recursion(count, max_depth, max_args, low, high):
  """Lengths and numbers of operators, drawn as described."""
  rng = random.Random(0)

  def draw(depth):
    if depth == max_depth or rng.random() > 0.25:
      return 1, 0
    parts = [draw(depth + 1) for _ in range(rng.randint(2, max_args))]
    length, operators = map(sum, zip(*parts, strict=True))
    return 2 + length, 1 + operators

  drawn = []
  while len(drawn) < count:
    length, operators = draw(1)
    if low < length < high:
      drawn.append((length, operators))
  return np.array(drawn)


def test_trees_are_distributed_as_if_drawn_one_by_one():
  sizes = {"max_depth": 6, "max_args": 7}
  found = generate(**sizes, max_length=200, min_length=40, num_train=4000)
  expected = lengths_by_recursion(4000, **sizes, low=40, high=200)
  rows = found["train"].rows()
  is_operator = [(row > 10) & (row < listops_trees.CLOSE) for row in rows]
  actual = np.array([(row.size, row.sum()) for row in is_operator])
  errors = np.hypot(expected.std(0), actual.std(0)) / 4000**0.5
  assert (abs(actual.mean(0) - expected.mean(0)) < 4 * errors).all()
  spread = actual.std(0) / expected.std(0)
  assert (abs(spread - 1) < 0.06).all()


def test_every_label_is_the_value_of_its_text(long_expressions):
  splits = generate()
  for expressions in (*splits.values(), long_expressions):
    for row, label in list(
      zip(expressions.rows(), expressions.labels, strict=True)
    )[:200]:
      assert listops_text.value(listops_generator.text(row)) == label


def test_no_expression_occurs_twice_and_all_have_the_wanted_length():
  splits = generate(max_length=12, min_length=3)
  rows = [row.tobytes() for s in splits.values() for row in s.rows()]
  assert len(set(rows)) == len(rows) == 200
  assert {len(row) for row in rows} == set(range(4, 12))
  means = [np.diff(s.offsets).mean() for s in splits.values()]
  assert max(means) - min(means) < 1


def test_depth_and_arguments_stay_below_their_limits():
  (*_, test) = generate(max_depth=3, max_args=4, min_length=3).values()
  depths, counts = [], []
  for row in test.rows():
    levels = []
    for token in row:
      if token == listops_trees.CLOSE:
        counts.append(levels.pop())
        continue
      if levels:
        levels[-1] += 1
      if token >= listops_trees.FIRST_OPERATOR:
        levels.append(0)
      depths.append(len(levels) + (token < listops_trees.FIRST_OPERATOR))
  assert max(depths) == 3
  assert (min(counts), max(counts)) == (2, 4)


def test_settings_alone_decide_the_outcome():
  def digest(**settings):
    arrays = [array for s in generate(**settings).values() for array in s]
    whole = b"".join(array.astype("<i8").tobytes() for array in arrays)
    return hashlib.sha256(whole).hexdigest()[:16]

  # The same on every machine; if it changes, so must the number in the name of
  # the cache.
  assert digest() == "b537993415fbdb95"
  assert digest(seed=1) != digest()


def test_a_digit_alone_is_an_expression():
  splits = generate(max_length=4, min_length=0, **ONE_EACH | {"num_train": 8})
  digits = np.concatenate([s.tokens for s in splits.values()])
  assert sorted(digits) == list(range(1, 11))
  assert listops_generator.text(np.array([6], np.uint8)) == "5"


def test_too_few_possible_expressions_are_reported():
  with pytest.raises(ValueError, match=r"found only 10 different .* not 11"):
    generate(max_length=4, min_length=0, **ONE_EACH | {"num_train": 9})


@pytest.mark.parametrize(
  ("setting", "message"),
  [
    ({"min_length": 39}, "min_length 39 and below max_length 40"),
    ({"max_depth": 0}, "max_depth must be >= 1, got 0"),
    ({"max_args": 1}, "max_args must be >= 2, got 1"),
    ({"num_test": 0}, "num_test must be >= 1, got 0"),
    ({"seed": -1}, "seed must be >= 0, got -1"),
  ],
)
def test_impossible_settings_are_refused(setting, message):
  with pytest.raises(ValueError, match=message):
    generate(**setting)


def test_command_writes_the_files_of_the_benchmark(tmp_path):
  options = [f"--{name}={value}" for name, value in SHORT.items()]
  listops_generator.main([f"--output_dir={tmp_path / 'new'}", *options])
  names = ["basic_test.tsv", "basic_train.tsv", "basic_val.tsv"]
  assert sorted(p.name for p in (tmp_path / "new").iterdir()) == names
  lines = (tmp_path / "new" / "basic_val.tsv").read_bytes().split(b"\r\n")
  assert lines[0] == b"Source\tTarget"
  assert lines[-1] == b""
  assert len(lines) == 22
  for line in lines[1:-1]:
    source, target = line.decode().split("\t")
    assert listops_text.value(source) == int(target)


def test_command_explains_itself(capsys):
  with pytest.raises(SystemExit, match="0"):
    listops_generator.main(["--help"])
  assert "--max_args" in capsys.readouterr().out
  with pytest.raises(SystemExit, match="2"):
    listops_generator.main(["--output_dir=x", "--max_args=1"])
  assert "max_args must be >= 2" in capsys.readouterr().err
