"""mini-ImageNet in one file, or in tables and images."""

import os
import pathlib

import numpy as np
import pytest

from data_files import files_read, images
from fewshot.data import mini_imagenet
from tests.data_files import writers
from tests.fewshot import miniature
from tests.fewshot.miniature import error_of


@pytest.mark.parametrize("place", ["", "miniimagenet"])
def test_one_file_loads(folder, place):
  (folder / place).mkdir(exist_ok=True)
  miniature.write_blob(folder / place)
  miniature.assert_is_the_small_set(
    mini_imagenet.load(folder, **miniature.SETTINGS)
  )


@pytest.mark.parametrize(
  "place", ["images", "", "{name}", "images/{name}", "{split}/{name}"]
)
def test_tables_and_images_load(folder, place):
  miniature.write_tables(folder, place)
  miniature.assert_is_the_small_set(
    mini_imagenet.load(folder, **miniature.SETTINGS)
  )


def test_images_are_averaged_and_decoded_once(folder, monkeypatch):
  path = miniature.write_blob(folder)
  small = mini_imagenet.load(
    folder, **(miniature.SETTINGS | {"image_size": 10})
  )
  assert small.test.data.shape == (5, 10, 10, 3)
  assert (small.test.data[..., 0] == 3).all()
  decode = images.square
  monkeypatch.setattr(images, "square", None)
  again = mini_imagenet.load(
    folder, **(miniature.SETTINGS | {"image_size": 10})
  )
  np.testing.assert_array_equal(again.base_train.data, small.base_train.data)
  monkeypatch.setattr(images, "square", decode)
  stamp = files_read.stamp(path)
  os.utime(path, ns=(0, 0))
  assert files_read.stamp(path) != stamp


def test_the_seed_sets_images_aside(folder):
  miniature.write_blob(folder)
  first, same, other = (
    mini_imagenet.load(folder, **miniature.SETTINGS, seed=seed).base_test.data[
      :, 0, 0, 1
    ]
    for seed in (1, 1, 2)
  )
  assert first.tolist() == same.tolist() != other.tolist()


@pytest.mark.parametrize(
  ("changes", "complaint"),
  [
    ({"blob": None}, "has no blob.npy"),
    ({"blob": np.zeros(9, np.int32)}, "blob as uint8 [n], got int32"),
    ({"offsets": np.arange(25)}, "expected 26 integers as offsets"),
    ({"offsets": np.arange(26.0)}, "expected 26 integers as offsets"),
    ({"offsets": np.zeros(26, int)}, "offsets do not increase after 0"),
    ({"offsets": np.arange(26)}, "offsets go from 0 to 25, blob from 0 to"),
    ({"label": np.full(25, 5)}, "row 0: expected a label 0..4, got 5"),
    ({"label": np.full(25, -1)}, "row 0: expected a label 0..4, got -1"),
    ({"label": np.zeros(25)}, "expected 25 integers as labels, got float64"),
    ({"label": np.zeros((5, 5), int)}, "integers as labels, got int64 [5, 5]"),
    (
      {"label": np.zeros(24, int)},
      "24 integers as labels, got uint8 [25]",
    ),
    ({"split": np.zeros(25, int)}, "split[1] contradicts class_split"),
    (
      {"class_split": np.array([0, 1, 0, 3, 0])},
      "row 3: expected a label 0..2",
    ),
    (
      {"class_split": np.zeros(4, int)},
      "5 integers as labels, got int64 [4]",
    ),
    ({"classes": np.arange(5)}, "expected classes as str, got int64"),
    ({"label": np.array(3)}, "1 integers as labels, got int64 []"),
    ({"classes": np.array(["a", None])}, "it holds Python objects"),
    ({"classes": np.array(["a"] * 5)}, "two classes are named 'a'"),
  ],
)
def test_wrong_arrays_are_named(folder, changes, complaint):
  path = miniature.write_blob(folder, **changes)
  message = error_of(folder)
  assert str(path) in message
  assert complaint in message


def test_classes_without_images_are_named(folder):
  labels = np.array([0, 1, 2, 3] * 6)
  split = np.array(miniature.CLASS_SPLIT)[labels]
  miniature.write_blob(folder, label=labels, split=split)
  assert "class 'n05' has no images" in error_of(folder)
  miniature.write_blob(folder)
  assert "class 'n01' has 5 images, and 3 + 2" in error_of(
    folder, num_base_val=3
  )


def test_an_image_that_cannot_be_read_is_named(folder):
  blob = np.zeros(25, np.uint8)
  miniature.write_blob(folder, blob=blob, offsets=np.arange(26))
  assert "npz, image 0: not a readable image" in error_of(folder)


@pytest.mark.parametrize(
  ("line", "complaint"),
  [
    ("x.png,n01", "train.csv, line 17: no image 'x.png' in"),
    ("../x.png,n01", "expected a short name without a path, got '../x.png'"),
    (f"{'x' * 5000}.png,n01", "expected a short name"),
    (f"x.png,{'n' * 5000}", "expected a short name"),
    ("x.png", "expected filename,label, got b'x.png'"),
    ("n01_0.png,n02", "class 'n02' is in another file"),
    ('"x.png,n01', "not a line of CSV"),
    ("\xff,n01", "not a line of CSV"),
  ],
)
def test_a_wrong_line_is_named(folder, line, complaint):
  miniature.write_tables(folder, "images")
  with (folder / "train.csv").open("a", encoding="latin-1") as file:
    file.write(line)
  message = error_of(folder)
  assert complaint in message
  assert len(message.replace(str(folder), "")) < 300


def test_empty_lines_and_a_byte_order_mark_are_allowed(folder):
  miniature.write_tables(folder, "images")
  path = folder / "val.csv"
  path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\r\n\r\n")
  miniature.assert_is_the_small_set(
    mini_imagenet.load(folder, **miniature.SETTINGS)
  )


def test_a_wrong_header_is_named(folder):
  miniature.write_tables(folder, "images")
  (folder / "val.csv").write_text("n02_0.png,n02\n")
  assert "val.csv, line 1: expected the header filename" in error_of(folder)
  (folder / "val.csv").unlink()
  assert "val.csv: no such file" in error_of(folder)


def test_damaged_files_load_right_or_not_at_all(folder):
  path = miniature.write_blob(folder)
  loaded, failures = writers.load_damaged(
    path, 15, lambda: mini_imagenet.load(folder, **miniature.SETTINGS)
  )
  assert failures >= 15
  for data in loaded:
    miniature.assert_is_the_small_set(data)


@writers.REAL
def test_the_real_images_load(folder):
  """Three of each class, from a smaller file of the same layout."""
  real = pathlib.Path(os.environ["NAM_DATA_DIR"], "miniimagenet")
  with np.load(real / "miniimagenet_84.npz", allow_pickle=False) as arrays:
    arrays = dict(arrays)
  assert np.bincount(arrays["label"]).tolist() == [600] * 100
  rows = np.arange(100)[:, None] * 600 + [0, 299, 599]
  starts, ends = (
    arrays["offsets"][rows.ravel()],
    arrays["offsets"][rows.ravel() + 1],
  )
  blob = [arrays["blob"][a:b] for a, b in zip(starts, ends, strict=True)]
  miniature.write_blob(
    folder,
    blob=np.concatenate(blob),
    offsets=np.cumsum([0, *map(len, blob)]),
    label=arrays["label"][rows.ravel()],
    split=arrays["split"][rows.ravel()],
    classes=arrays["classes"],
    class_split=arrays["class_split"],
  )
  data = mini_imagenet.load(folder, num_base_val=1, num_base_test=1)
  sizes = [(len(s.names), *s.data.shape) for s in data.splits().values()]
  base = [(64, 64, 84, 84, 3)] * 3
  assert sizes == [*base, (16, 48, 84, 84, 3), (20, 60, 84, 84, 3)]
  assert 80 < data.test.data.mean() < 150
