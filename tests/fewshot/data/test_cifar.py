"""CIFAR-FS and FC100 from every format of CIFAR-100."""

import numpy as np
import pytest
from tests.files import writers

from data_files import official
from data_files.errors import DataError
from fewshot.data import cifar, cifar_classes, registry

# Of each class: training and test images; num_base_val is 1.
TRAIN, TEST = 3, 2
NAMES = ("cifar-fs", "fc100")
# The superclasses of a few classes that FC100 keeps apart.
KNOWN = {"whale": 0, "trout": 1, "bee": 7, "lion": 8, "baby": 14, "mouse": 16}


def superclasses():
  """Each class in one superclass, five a superclass, KNOWN among them."""
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


def python(planes, coarse, fine):
  return writers.python2_pickle(
    {
      "coarse_labels": coarse.tolist(),
      "fine_labels": fine.tolist(),
      "data": planes,
    }
  )


BINARY = {
  f"cifar-100-binary/{name}.bin": binary(*arrays)
  for name, arrays in BATCHES.items()
}
PYTHON = {
  f"cifar-100-python/{name}": python(*arrays)
  for name, arrays in BATCHES.items()
}
ARCHIVES = {
  "cifar-100-binary.tar.gz": BINARY,
  "cifar-100-python.tar.gz": PYTHON,
}


def load(folder, name="cifar-fs"):
  return cifar.load(name, folder, num_base_val=1)


def error_of(folder, name="cifar-fs"):
  with pytest.raises(DataError) as caught:
    load(folder, name)
  return str(caught.value)


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
    # The first pixel of each plane tells the class.
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
@pytest.mark.parametrize("archive", ARCHIVES)
def test_official_archives_and_their_folders_load(tmp_path, archive, name):
  place = tmp_path / "packed" / "cifar100"
  writers.write_archive(writers.write(place / archive, b""), ARCHIVES[archive])
  writers.write_folder(tmp_path / "unpacked", ARCHIVES[archive])
  for folder in ("packed", "unpacked"):
    assert_is_the_small_set(load(tmp_path / folder, name))


def test_prepared_folders_load(tmp_path):
  splits = {}
  for name, (planes, coarse, fine) in BATCHES.items():
    colors = np.moveaxis(planes.reshape(-1, 3, 32, 32), 1, -1)
    splits[name] = [
      [
        writers.example(image=writers.png(image), coarse_label=int(c), label=f)
        for image, c, f in zip(colors, coarse, fine.tolist(), strict=True)
      ]
    ]
  writers.write_prepared(tmp_path / "cifar100" / "3.0.2", "cifar100", splits)
  assert_is_the_small_set(load(tmp_path))


def test_cifar_fs_has_the_published_classes(tmp_path):
  writers.write_folder(tmp_path, BINARY)
  data = load(tmp_path)
  assert [len(s.names) for s in data.splits().values()] == [64] * 3 + [16, 20]
  assert {"whale", "plain", "rocket", "baby"} <= set(data.test.names)
  assert {"beaver", "sea", "tractor"} <= set(data.val.names)
  assert {"apple", "wolf", "girl"} <= set(data.base_train.names)


def test_fc100_keeps_superclasses_together(tmp_path):
  writers.write_folder(tmp_path, BINARY)
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
  writers.write_folder(tmp_path, contents)
  assert "class 'bed' is in two superclasses" in error_of(tmp_path, "fc100")


@pytest.mark.parametrize(
  ("data", "complaint"),
  [
    (None, "has no test"),
    (b"", "test.bin is empty"),
    (b"\0" * 3073, "records of 3074 bytes each, got 3073"),
    (b"\0\x64" + b"\0" * 3072, "record 0: expected a label 0..99, got 100"),
    (b"\x14\0" + b"\0" * 3072, "record 0: expected a label 0..19, got 20"),
    (b"\0" * 3074, "class 'aquarium_fish' has no images"),
  ],
)
def test_a_wrong_batch_is_named(tmp_path, data, complaint):
  contents = BINARY | {"cifar-100-binary/test.bin": data}
  contents = {k: v for k, v in contents.items() if v is not None}
  writers.write_archive(tmp_path / "cifar-100-binary.tar.gz", contents)
  message = error_of(tmp_path)
  assert complaint in message
  assert official.CIFAR100_BINARY.md5 in message


def test_a_pickle_that_is_no_batch_is_refused(tmp_path):
  good = PYTHON["cifar-100-python/test"]
  for bad in (
    b"cos\nsystem\n(S'true'\ntR.",
    good.replace(b"fine_labels", b"mean_labels"),
    good.replace(b"U\x02u1", b"U\x02u2"),
    writers.python2_pickle({"coarse_labels": [1], "fine_labels": ["a"]}),
  ):
    contents = PYTHON | {"cifar-100-python/test": bad}
    writers.write_folder(tmp_path, contents)
    assert "cifar-100-python/test: " in error_of(tmp_path)


@pytest.mark.parametrize("archive", ARCHIVES)
def test_damaged_archives_load_right_or_not_at_all(tmp_path, archive):
  path = tmp_path / archive
  writers.write_archive(path, ARCHIVES[archive])
  failures = 0
  for data in writers.damaged_copies(path.read_bytes(), 25):
    path.write_bytes(data)
    try:
      assert_is_the_small_set(load(tmp_path))
    except DataError:
      failures += 1
  assert failures >= 25


def test_too_few_images_are_named(tmp_path):
  writers.write_folder(tmp_path, BINARY)
  with pytest.raises(DataError, match="class 'apple' has 3 images, and 50 are"):
    registry.load("cifar-fs", tmp_path)
