"""Folders prepared by TFDS: small ones, TFDS's mock, and damaged ones."""

import json
import os

import numpy as np
import pytest
import tensorflow_datasets as tfds

from data_files import cifar, tfds_source
from data_files.errors import DataError
from tests.data_files import writers

TEXTS = [{"text": "t" * n, "label": n % 2} for n in (3, 200, 9000)]


@pytest.fixture
def folder(tmp_path):
  features = {"text": None, "label": 2}
  return writers.write_prepared(tmp_path, "tiny", features, {"train": TEXTS})


def error_of(folder, split="train", features=("text", "label")):
  with pytest.raises(DataError) as caught:
    tfds_source.read(folder, split, features)
  assert str(folder) in str(caught.value)
  return str(caught.value)


def test_features_come_in_the_order_of_the_examples(folder):
  texts, labels = tfds_source.read(folder, "train", ("text", "label"))
  assert [len(text) for text in texts] == [3, 200, 9000]
  assert texts[0] == b"ttt"
  assert labels == [1, 0, 0]


def test_a_pipe_in_the_folder_is_refused(folder):
  (path,) = folder.glob("*.array_record-*")
  path.unlink()
  os.mkfifo(path)
  assert "it is a pipe, not a file" in error_of(folder)


def test_the_home_of_tfds_is_found(tmp_path, monkeypatch):
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
  assert tfds_source.home() == tmp_path
  monkeypatch.delenv("TFDS_DATA_DIR")
  monkeypatch.setenv("HOME", str(tmp_path))
  assert tfds_source.home() == tmp_path / "tensorflow_datasets"


def test_examples_of_the_mock_of_tfds_are_read(folder):
  with tfds.testing.mock_data(num_examples=5, data_dir=folder):
    texts, labels = tfds_source.read(folder, "train", ("text", "label"))
  assert len(texts) == len(labels) == 5
  assert {int(label) for label in labels} <= {0, 1}


@pytest.mark.parametrize(
  ("name", "features"),
  [
    ("imdb_reviews", {"text": None, "label": 2}),
    ("cifar10", {"image": cifar.SHAPE, "label": 10}),
    ("cifar100", {"image": cifar.SHAPE, "coarse_label": 20, "label": 100}),
    ("omniglot", {"image": (105, 105, 3), "label": 1623}),
  ],
)
def test_tfds_prepares_what_is_read(tmp_path, name, features):
  found = tfds.builder(name, data_dir=tmp_path).info.features
  for feature, kind in features.items():
    if isinstance(kind, tuple):
      assert found[feature].shape == kind
    elif kind:
      assert found[feature].num_classes == kind


def test_a_folder_in_tfrecord_tells_how_to_convert_it(folder):
  path = folder / "dataset_info.json"
  info = json.loads(path.read_text()) | {"fileFormat": "tfrecord"}
  path.write_text(json.dumps(info))
  message = error_of(folder)
  assert f"python -m data_files.prepare --convert {folder}" in message
  assert "\n" not in message


def test_missing_splits_features_and_files_are_named(folder):
  assert "cannot read test" in error_of(folder, "test")
  assert "cannot read train" in error_of(folder, features=("image",))
  (file,) = folder.glob("tiny-train.*")
  file.unlink()
  error_of(folder)


@pytest.mark.parametrize("info", ["", "{", "[]", '{"splits": 3}'])
def test_a_wrong_dataset_info_is_an_error(folder, info):
  (folder / "dataset_info.json").write_text(info)
  error_of(folder)


def test_damaged_records_are_read_right_or_not_at_all(folder):
  (path,) = folder.glob("tiny-train.*")
  whole = tfds_source.read(folder, "train", ("text", "label"))
  loaded, failures = writers.load_damaged(
    path, 25, lambda: tfds_source.read(folder, "train", ("text", "label"))
  )
  assert failures >= 12
  assert all(found == whole for found in loaded)


def test_images_of_another_shape_are_named(tmp_path):
  small = [{"image": np.zeros((16, 32, 3), np.uint8), "label": 1}]
  folder = writers.write_prepared(
    tmp_path,
    "cifar10",
    {"image": (None, None, 3), "label": 10},
    {"train": small, "test": small},
  )
  with pytest.raises(DataError, match=r"train image 0: expected uint8 \[32"):
    cifar.read_prepared(folder, ["label"], [10])
