"""Splits check themselves; classes and images are divided as asked."""

import numpy as np
import pytest

from data_files.errors import DataError
from fewshot.data import dividing
from fewshot.data.dataset import Dataset, Split


def images(count, side=4):
  return np.arange(count * side * side, dtype=np.uint8).reshape(
    -1, side, side, 1
  )


def make_split(*labels, names=("a", "b")):
  return Split(images(len(labels)), np.array(labels, np.int32), names)


def make_dataset(**changes):
  base = {name: make_split(0, 1) for name in BASE}
  others = {
    "val": make_split(0, names=("c",)),
    "test": make_split(0, names=("d",)),
  }
  return Dataset("tiny", **(base | others | changes))


BASE = ("base_train", "base_val", "base_test")


def test_rows_and_counts_of_classes():
  split = make_split(1, 0, 1, 2, 1, names=("a", "b", "c"))
  assert split.counts().tolist() == [1, 3, 1]
  assert [rows.tolist() for rows in split.rows_by_class()] == [
    [1],
    [0, 2, 4],
    [3],
  ]


def test_rows_of_a_large_class_ascend():
  split = Split(
    np.zeros((5000, 1, 1, 1), np.uint8),
    np.random.default_rng(0).integers(0, 2, 5000, np.int32),
    ("a", "b"),
  )
  assert all((np.diff(rows) > 0).all() for rows in split.rows_by_class())


@pytest.mark.parametrize(
  ("data", "labels", "names", "complaint"),
  [
    (images(2)[..., 0], [0, 1], "ab", "expected images, uint8"),
    (np.zeros((2, 4, 4, 1)), [0, 1], "ab", "got float64 [2, 4, 4, 1]"),
    (np.zeros((2, 4)), [0, 1], "ab", "features, float32 [n d], got float64"),
    (images(2), [0], "ab", "expected 2 integers as labels, got int32 [1]"),
    (images(2), [0, 2], "ab", "row 1: expected a label 0..1, got 2"),
    (images(2), [0, -1], "ab", "row 1: expected a label 0..1, got -1"),
    (images(2), [0, 0], "ab", "class 'b' has no images"),
    (images(2), [0, 1], "aa", "two classes are named 'a'"),
    (images(0), [], "", "no classes"),
    (
      np.array([[1], [np.nan]], np.float32),
      [0, 1],
      "ab",
      "row 1: the features",
    ),
  ],
)
def test_a_wrong_split_is_an_error(data, labels, names, complaint):
  with pytest.raises(DataError) as caught:
    Split(data, np.array(labels, np.int32), tuple(names))
  assert complaint in str(caught.value)


def test_labels_of_another_type_are_an_error():
  with pytest.raises(DataError, match="expected labels int32"):
    Split(images(1), np.zeros(1, np.int64), ("a",))


@pytest.mark.parametrize(
  ("changes", "complaint"),
  [
    (
      {"base_val": make_split(0, 1, names=("a", "x"))},
      "of base_val are not those",
    ),
    ({"base_test": make_split(0, 1, names=("b", "a"))}, "base_test are not"),
    ({"val": make_split(0, names=("b",))}, "'b' is in base_train and in val"),
    ({"test": make_split(0, names=("c",))}, "'c' is in val and in test"),
    (
      {"test": Split(images(1, 5), np.zeros(1, np.int32), ("d",))},
      "test has uint8 [1, 5, 5, 1], base_train uint8 [2, 4, 4, 1]",
    ),
  ],
)
def test_splits_that_do_not_fit_are_an_error(changes, complaint):
  assert list(make_dataset().splits()) == [*BASE, "val", "test"]
  with pytest.raises(DataError) as caught:
    make_dataset(**changes)
  assert str(caught.value).startswith("tiny: ")
  assert complaint in str(caught.value)


def test_held_out_rows_are_disjoint_complete_and_seeded():
  labels = np.random.default_rng(0).permutation(np.repeat(np.arange(5), 10))
  names = "abcde"
  rest, first, second = parts = dividing.hold_out(labels, names, [2, 3], 7)
  assert np.sort(np.concatenate(parts)).tolist() == list(range(50))
  for rows, count in ((rest, 5), (first, 2), (second, 3)):
    assert np.bincount(labels[rows]).tolist() == [count] * 5
    assert (np.diff(rows) > 0).all()
  again = dividing.hold_out(labels, names, [2, 3], 7)
  other = dividing.hold_out(labels, names, [2, 3], 8)
  assert all((a == b).all() for a, b in zip(parts, again, strict=True))
  assert (first != other[1]).any()


def test_a_class_too_small_to_divide_is_named():
  labels = np.array([0, 0, 0, 0, 1, 1, 1], np.int32)
  with pytest.raises(
    DataError, match=r"class 'b' has 3 images, and 2 \+ 1 are .* needs 4"
  ):
    dividing.hold_out(labels, ["a", "b"], [2, 1], 0)


@pytest.mark.parametrize(
  "labels", [[0, 1, 2, 1, 0], [0, 1, 1, 2, 2], [1, 0, 2, 0, 1]]
)
def test_selected_classes_are_numbered_anew(labels):
  labels = np.array(labels, np.int32)
  data = images(5)
  split = dividing.select(data, labels, ["a", "b", "c"], [2, 1])
  assert split.names == ("c", "b")
  rows = np.flatnonzero(labels)
  np.testing.assert_array_equal(split.data, data[rows])
  assert [split.names[i] for i in split.labels] == [
    "abc"[i] for i in labels[rows]
  ]
