"""CIFAR-10 from every format, gray."""

import functools
import os
import pathlib
import posixpath

import numpy as np
import pytest

from data_files import official
from lra_tasks import image
from tests.data_files import writers

ROWS = 4
BATCHES = {
  name: writers.cifar_images(ROWS, seed)
  for seed, name in enumerate(writers.CIFAR_BATCHES)
}
BINARY = {
  f"cifar-10-batches-bin/{name}.bin": writers.cifar_binary(*batch)
  for name, batch in BATCHES.items()
}
ARCHIVE = "cifar-10-binary.tar.gz"
LABELS = np.concatenate([labels for _, labels in BATCHES.values()])


def gray_exactly(colors):
  """What TensorFlow does, in float64: luma in 0..1, times 255.5, truncated."""
  weights = np.array([0.2989, 0.5870, 0.1140])
  return np.tensordot(colors / 255, weights, axes=([1], [0])) * 255.5


def write_npz(path, **changes):
  rng = np.random.default_rng(0)
  arrays = {
    "x_train": rng.integers(0, 256, (20, 32, 32), np.uint8),
    "y_train": np.arange(20, dtype=np.uint8) % 10,
    "x_test": rng.integers(0, 256, (3, 32, 32), np.uint8),
    "y_test": np.array([9, 0, 5], np.uint8),
  }
  arrays |= changes
  arrays = {name: value for name, value in arrays.items() if value is not None}
  np.savez_compressed(path, **arrays)
  return arrays


error_of = functools.partial(writers.error_of, image.make_task)


def assert_is_the_small_set(a_task):
  splits = (a_task.train, a_task.validation, a_task.test)
  # The benchmark takes the first 90% of the training images: 18 of 20.
  assert [len(rows) for rows in splits] == [18, 2, ROWS]
  labels = np.concatenate([rows.labels for rows in splits])
  np.testing.assert_array_equal(labels, LABELS)
  colors, _ = BATCHES["test_batch"]
  exact = gray_exactly(colors[2:3]).ravel()
  np.testing.assert_array_equal(a_task.test[2]["inputs"], exact.astype(int))
  colors, _ = BATCHES["data_batch_5"]
  exact = gray_exactly(colors[3:]).ravel()
  np.testing.assert_array_equal(a_task.validation[1]["inputs"], exact // 1)


@pytest.mark.parametrize("place", ["", "cifar10"])
def test_the_official_archive_loads(tmp_path, place):
  writers.write_archive(tmp_path / place / ARCHIVE, BINARY)
  assert_is_the_small_set(image.make_task(tmp_path))


def test_prepared_folders_load_also_from_where_tfds_keeps_them(
  tmp_path, monkeypatch
):
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
  examples = [
    {"image": np.moveaxis(colors, 0, -1), "label": int(label)}
    for batch in BATCHES.values()
    for colors, label in zip(*batch, strict=True)
  ]
  features = {"image": (32, 32, 3), "label": 10}
  splits = {"train": examples[:-ROWS], "test": examples[-ROWS:]}
  writers.write_prepared(tmp_path, "cifar10", features, splits)
  assert_is_the_small_set(image.make_task(tmp_path))
  assert_is_the_small_set(image.make_task(None))


def test_gray_images_load(tmp_path):
  arrays = write_npz(tmp_path / "cifar10_gray.npz")
  a_task = image.make_task(tmp_path)
  assert (a_task.name, a_task.vocab_size) == ("image", 256)
  assert (a_task.num_classes, a_task.max_length) == (10, 1024)
  row = a_task.validation[0]
  np.testing.assert_array_equal(row["inputs"], arrays["x_train"][18].ravel())
  assert row["label"] == 8


def test_gray_is_cut_off_as_in_tensorflow_not_rounded():
  colors = np.array([[0, 0, 0], [255, 255, 255], [255, 0, 0], [9, 100, 200]])
  # The last one: a luma of 84.19 / 255; times 255.5 it is 84.4.
  assert image.gray(colors.astype(np.uint8)).tolist() == [0, 255, 76, 84]
  every = np.random.default_rng(0).integers(0, 256, (100_000, 3), np.uint8)
  exact = gray_exactly(every)
  # Sums next to a whole number may fall to either side in float32.
  clear = np.abs(exact - np.round(exact)) > 1e-4
  np.testing.assert_array_equal(image.gray(every)[clear], exact[clear] // 1)
  luma = every @ np.array([0.2989, 0.5870, 0.1140])
  assert (image.gray(every) != np.round(luma)).any()


@pytest.mark.parametrize(
  ("name", "data", "complaint"),
  [
    ("data_batch_2.bin", b"\0" * 3072, "records of 3073 bytes each, got 3072"),
    ("data_batch_2.bin", b"", "is empty"),
    ("test_batch.bin", b"\0" * 3073 + b"\x0a" * 3073, "row 1: expected a"),
    ("data_batch_4.bin", None, "has no data_batch_4"),
    ("../other/test_batch.bin", b"\0" * 3073, "another folder has a file"),
  ],
)
def test_a_wrong_batch_is_named(tmp_path, name, data, complaint):
  contents = dict(BINARY)
  contents[posixpath.normpath(f"cifar-10-batches-bin/{name}")] = data
  contents = {k: v for k, v in contents.items() if v is not None}
  writers.write_archive(tmp_path / ARCHIVE, contents)
  message = error_of(tmp_path)
  assert complaint in message
  assert posixpath.basename(name).removesuffix(".bin") in message
  assert official.CIFAR10.md5 in message


@pytest.mark.parametrize(
  ("changes", "complaint"),
  [
    ({"y_test": None}, "has no y_test.npy"),
    ({"x_test": np.zeros((3, 32, 31), np.uint8)}, "uint8 [n 32 32]"),
    ({"x_test": np.zeros((3, 32, 32))}, "uint8 [n 32 32], got float64"),
    (
      {"y_test": np.zeros(4, np.uint8)},
      "3 integers as labels, got uint8 [4]",
    ),
    ({"y_test": np.array([0, 10, 0])}, "row 1: expected a label 0..9"),
    ({"y_test": np.zeros(3)}, "expected 3 integers as labels, got float64"),
    ({"y_test": np.array([0, None, 1])}, "it holds Python objects"),
  ],
)
def test_wrong_arrays_are_named(tmp_path, changes, complaint):
  write_npz(tmp_path / "cifar10_gray.npz", **changes)
  message = error_of(tmp_path)
  assert str(tmp_path / "cifar10_gray.npz") in message
  assert complaint in message


def test_without_data_the_error_tells_what_to_fetch(tmp_path):
  message = error_of(tmp_path)
  assert "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz" in message
  assert str(tmp_path / "cifar10") in message


@pytest.mark.parametrize("file", [ARCHIVE, "cifar10_gray.npz"])
def test_damaged_files_load_right_or_not_at_all(tmp_path, file):
  path = tmp_path / file
  if file == ARCHIVE:
    writers.write_archive(path, BINARY)
  else:
    write_npz(path)
  whole = image.make_task(tmp_path).test
  load = functools.partial(image.make_task, tmp_path)
  for a_task in writers.load_damaged(path, 25, load)[0]:
    assert len(a_task.test) == len(whole)
    np.testing.assert_array_equal(a_task.test[0]["inputs"], whole[0]["inputs"])


@writers.REAL
def test_the_real_images_are_complete():
  a_task = image.make_task(pathlib.Path(os.environ["NAM_DATA_DIR"]))
  splits = (a_task.train, a_task.validation, a_task.test)
  assert [len(rows) for rows in splits] == [45_000, 5_000, 10_000]
  assert np.bincount(a_task.test.labels).tolist() == [1_000] * 10
  pixels = np.concatenate([a_task.test[i]["inputs"] for i in range(100)])
  assert (pixels.min(), pixels.max()) == (0, 255)
