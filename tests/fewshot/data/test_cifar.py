"""CIFAR-FS and FC100 from every format of CIFAR-100."""

import functools

import numpy as np
import pytest

from data_files import official
from data_files.errors import DataError
from fewshot.data import cifar, cifar_classes, registry
from tests.data_files import writers

# Training and test images per class; num_base_val is 1.
TRAIN, TEST = 3, 2
NAMES = ("cifar-fs", "fc100")
# The superclasses of a few classes that FC100 keeps apart.
KNOWN = {"whale": 0, "trout": 1, "bee": 7, "lion": 8, "baby": 14, "mouse": 16}


def superclasses():
  """Each class in one superclass, five per superclass, KNOWN among them."""
  found = [KNOWN.get(name, -1) for name in cifar_classes.FINE]
  room = [n for n in range(20) for _ in range(5 - found.count(n))]
  return np.array([room.pop() if n < 0 else n for n in found], np.uint8)


COARSE = superclasses()


def batch(per_class, seed):
  rng = np.random.default_rng(seed)
  fine = rng.permutation(np.repeat(np.arange(100, dtype=np.uint8), per_class))
  # Small numbers: images that compress well keep the archives small.
  planes = rng.integers(0, 2, (len(fine), 1), np.uint8).repeat(3072, axis=1)
  planes[:, :3072:1024] = fine[:, None]
  planes[:, 1] = np.arange(len(fine)) % 250
  return planes, COARSE[fine], fine


BATCHES = {"train": batch(TRAIN, 0), "test": batch(TEST, 1)}


def binary(planes, coarse, fine):
  return np.concatenate([coarse[:, None], fine[:, None], planes], 1).tobytes()


BINARY = {
  f"cifar-100-binary/{name}.bin": binary(*arrays)
  for name, arrays in BATCHES.items()
}
ARCHIVE = "cifar-100-binary.tar.gz"


def write(folder, contents=BINARY):
  writers.write_archive(folder / ARCHIVE, contents)


def load(folder, name="cifar-fs"):
  return cifar.load(name, folder, num_base_val=1)


error_of = functools.partial(writers.error_of, load)


def assert_is_the_small_set(data):
  counts = {n: set(s.counts()) for n, s in data.splits().items()}
  assert counts == {
    "base_train": {TRAIN - 1},
    "base_val": {1},
    "base_test": {TEST},
    "val": {TRAIN + TEST},
    "test": {TRAIN + TEST},
  }
  for split in data.splits().values():
    assert split.data.shape[1:] == (32, 32, 3)
    # The first pixel of each plane encodes the class.
    numbers = [cifar_classes.FINE.index(name) for name in split.names]
    for channel in range(3):
      pixels = split.data[:, 0, 0, channel]
      np.testing.assert_array_equal(pixels, np.array(numbers)[split.labels])
  seen = np.concatenate([data.base_train.data, data.base_val.data])
  planes, _, fine = BATCHES["train"]
  base = np.isin([cifar_classes.FINE[i] for i in fine], data.base_train.names)
  expected = np.moveaxis(planes[base].reshape(-1, 3, 32, 32), 1, -1)
  assert sorted(map(bytes, seen)) == sorted(map(bytes, expected))


@pytest.mark.parametrize("name", NAMES)
def test_the_official_archive_loads(tmp_path, name):
  write(tmp_path / "cifar100")
  assert_is_the_small_set(load(tmp_path, name))


def test_prepared_folders_load_also_from_where_tfds_keeps_them(
  tmp_path, monkeypatch
):
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
  splits = {}
  for name, (planes, coarse, fine) in BATCHES.items():
    colors = np.moveaxis(planes.reshape(-1, 3, 32, 32), 1, -1)
    splits[name] = [
      {"image": image, "coarse_label": int(c), "label": int(f)}
      for image, c, f in zip(colors, coarse, fine, strict=True)
    ]
  features = {"image": (32, 32, 3), "coarse_label": 20, "label": 100}
  writers.write_prepared(tmp_path, "cifar100", features, splits)
  assert_is_the_small_set(load(tmp_path))
  assert_is_the_small_set(load(None))


def test_cifar_fs_has_the_published_classes(tmp_path):
  write(tmp_path)
  data = load(tmp_path)
  assert [len(s.names) for s in data.splits().values()] == [64] * 3 + [16, 20]
  assert {"whale", "plain", "rocket", "baby"} <= set(data.test.names)
  assert {"beaver", "sea", "tractor"} <= set(data.val.names)
  assert {"apple", "wolf", "girl"} <= set(data.base_train.names)


def test_fc100_keeps_superclasses_together(tmp_path):
  write(tmp_path)
  data = load(tmp_path, "fc100")
  assert [len(s.names) for s in data.splits().values()] == [60] * 3 + [20, 20]
  kinds = {
    part: {
      cifar_classes.COARSE[COARSE[cifar_classes.FINE.index(name)]]
      for name in getattr(data, part).names
    }
    for part in ("base_train", "val", "test")
  }
  assert [len(found) for found in kinds.values()] == [12, 4, 4]
  assert kinds["test"] == {
    *("aquatic_mammals", "insects", "medium_mammals", "people")
  }
  assert "large_carnivores" in kinds["val"]


def test_a_class_in_two_superclasses_is_an_error(tmp_path):
  planes, coarse, fine = BATCHES["test"]
  coarse = coarse.copy()
  coarse[fine == 5] = [1, 2]
  contents = BINARY | {
    "cifar-100-binary/test.bin": binary(planes, coarse, fine)
  }
  write(tmp_path, contents)
  assert "class 'bed' is in two superclasses" in error_of(tmp_path, "fc100")


@pytest.mark.parametrize(
  ("data", "complaint"),
  [
    (None, "has no test"),
    (b"", "test.bin is empty"),
    (b"\0" * 3073, "records of 3074 bytes each, got 3073"),
    (b"\0\x64" + b"\0" * 3072, "row 0: expected a label 0..99, got 100"),
    (b"\x14\0" + b"\0" * 3072, "row 0: expected a label 0..19, got 20"),
    (b"\0" * 3074, "class 'aquarium_fish' has no images"),
  ],
)
def test_a_wrong_batch_is_named(tmp_path, data, complaint):
  contents = BINARY | {"cifar-100-binary/test.bin": data}
  contents = {k: v for k, v in contents.items() if v is not None}
  write(tmp_path, contents)
  message = error_of(tmp_path)
  assert complaint in message
  assert official.CIFAR100.md5 in message


def test_damaged_archives_load_right_or_not_at_all(tmp_path):
  write(tmp_path)
  loaded, failures = writers.load_damaged(
    tmp_path / ARCHIVE, 12, lambda: load(tmp_path)
  )
  assert failures >= 12
  for data in loaded:
    assert_is_the_small_set(data)


def test_too_few_images_are_named(tmp_path):
  write(tmp_path)
  with pytest.raises(DataError, match="class 'apple' has 3 images, and 50 are"):
    registry.load("cifar-fs", tmp_path)
