"""Features from a file."""

import functools

import numpy as np
import pytest

from data_files.errors import DataError
from fewshot.data import features
from tests.data_files import writers

LABELS = np.repeat([30, 10, 20, 40], 4)
BY_CLASS = np.array(["base", "novel", "base", "val"])  # of 10, 20, 30, 40
SETTINGS = {"num_base_val": 1, "num_base_test": 1}


def write(folder, name="features.npz", **changes):
  """Features that encode their row."""
  rows = np.arange(16.0)[:, None] * [1, 2, 3]
  arrays = {"features": rows, "labels": LABELS, "split": BY_CLASS} | changes
  path = folder / name
  np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
  return path


def load(folder):
  return features.load(folder, **SETTINGS)


error_of = functools.partial(writers.error_of, load)


@pytest.mark.parametrize("of_rows", [False, True])
@pytest.mark.parametrize("numbered", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_file_loads(tmp_path, of_rows, numbered, named):
  split = BY_CLASS
  if numbered:
    split = np.array([("base", "val", "novel").index(s) for s in split])
  if of_rows:
    split = split[LABELS // 10 - 1]
  labels = np.array([f"x{n}" for n in LABELS]) if named else LABELS
  write(tmp_path, "mine.npz", labels=labels, split=split)
  data = load(tmp_path)
  prefix = "x" if named else ""
  assert data.base_train.names == (f"{prefix}10", f"{prefix}30")
  assert data.val.names == (f"{prefix}40",)
  assert data.test.names == (f"{prefix}20",)
  seen = []
  for split in data.splits().values():
    assert split.data.dtype == np.float32
    for row, label in zip(split.data, split.labels, strict=True):
      assert split.names[label] == f"{prefix}{LABELS[int(row[0])]}"
      assert row.tolist() == [row[0], 2 * row[0], 3 * row[0]]
      seen.append(int(row[0]))
  assert sorted(seen) == list(range(16))
  assert [len(s.data) for s in data.splits().values()] == [4, 2, 2, 4, 4]


BROKEN = np.ones((16, 3))
BROKEN[13, 1] = np.nan


@pytest.mark.parametrize(
  ("changes", "complaint"),
  [
    ({"features": None}, "has no features.npy"),
    ({"features": BROKEN}, "row 13: the features are not all finite"),
    ({"features": np.full((16, 3), 1e300)}, "row 0: the features are not"),
    ({"features": np.ones((16, 3), int)}, "floats [n d], got int64 [16, 3]"),
    ({"features": np.ones((16, 3, 1))}, "floats [n d], got float64"),
    ({"features": np.ones((0, 3))}, "floats [n d], got float64 [0, 3]"),
    ({"features": np.array([[None]])}, "it holds Python objects"),
    ({"labels": LABELS[1:]}, "expected 16 integers or strings as labels"),
    ({"labels": LABELS / 2}, "integers or strings as labels, got float64"),
    ({"split": BY_CLASS[1:]}, "split for 16 rows or 4 classes"),
    ({"split": BY_CLASS.astype("S")}, "split for 16 rows or 4 classes"),
    ({"split": np.array([0, 1, 2, 3])}, "split[3]: expected one of 0, 1, 2"),
    ({"split": np.array([*"abcd"])}, "split[0]: expected one of base, val"),
    ({"split": np.array([*BY_CLASS[:3], "n\0l"])}, r"novel, got n\x00l"),
    ({"split": np.array([0, 1, 1, 1])}, "no class in novel"),
    ({"split": np.arange(16) % 3}, "row 1: class '30' is in two splits"),
  ],
)
def test_wrong_arrays_are_named(tmp_path, changes, complaint):
  path = write(tmp_path, **changes)
  message = error_of(tmp_path)
  assert str(path) in message
  assert complaint in message


def test_a_class_with_too_few_rows_is_named(tmp_path):
  write(tmp_path)
  with pytest.raises(DataError, match=r"npz: class '10' has 4 images, and 5"):
    features.load(tmp_path)


def test_the_file_must_be_clear(tmp_path):
  assert "features.npz, *.npz" in error_of(tmp_path)
  write(tmp_path, "a.npz")
  write(tmp_path, "b.npz")
  assert "several .npz files, none features.npz" in error_of(tmp_path)
  write(tmp_path)
  load(tmp_path)


def test_damaged_files_load_right_or_not_at_all(tmp_path):
  path = write(tmp_path)
  whole = load(tmp_path)
  loaded, failures = writers.load_damaged(path, 25, lambda: load(tmp_path))
  assert failures >= 25
  for data in loaded:
    np.testing.assert_array_equal(data.test.data, whole.test.data)
