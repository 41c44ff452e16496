"""Pickled data sets are converted, and nothing in them is run."""

import numpy as np
import pytest

from data_files import cifar, inert_pickle, unpickle
from data_files.errors import DataError
from fewshot.data import mini_imagenet
from tests.data_files import writers
from tests.fewshot import miniature

DATA = np.arange(3 * 8 * 8 * 3, dtype=np.uint8).reshape(3, 8, 8, 3)
PLANES = np.arange(2 * 3072).astype(np.uint8).reshape(2, 3072)


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """An empty data_dir, and a cache elsewhere."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  (tmp_path / "data").mkdir()
  return tmp_path / "data"


def write_cifar(folder, name, batches):
  contents = {
    file: batch if isinstance(batch, bytes) else writers.python2_pickle(batch)
    for file, batch in batches.items()
  }
  return writers.write_archive(folder / name, contents)


def write_cache(folder, content):
  """The three files, the last with this content."""
  if isinstance(content, dict):
    content = writers.python2_pickle(content)
  miniature.write_three(folder)
  writers.write(folder / "mini-imagenet-cache-test.pkl", content)
  return sorted(folder.glob("*.pkl"))


def test_cifar_archives_become_binary_ones(tmp_path):
  batches = {
    f"cifar-10-batches-py/{name}": {"labels": [9, 0], "data": PLANES}
    for name in writers.CIFAR_BATCHES
  }
  path = write_cifar(tmp_path, "cifar-10-python.tar.gz", batches)
  target = unpickle.convert([path])
  found = cifar.read_archive(target, writers.CIFAR_BATCHES, [10])
  assert [batch.labels.tolist() for batch in found] == [[[9, 0]]] * 6
  expected = np.moveaxis(PLANES.reshape(2, 3, 32, 32), 1, -1)
  np.testing.assert_array_equal(found[0].images, expected)
  labels = {"coarse_labels": [1, 19], "fine_labels": [99, 3]}
  batches = {
    f"cifar-100-python/{name}": labels | {"data": PLANES}
    for name in ("train", "test")
  }
  path = write_cifar(tmp_path, "cifar-100-python.tar.gz", batches)
  (found, _) = cifar.read_archive(
    unpickle.convert([path]), ["train", "test"], [20, 100]
  )
  assert found.labels.tolist() == [[1, 19], [99, 3]]


@pytest.mark.parametrize(
  ("batch", "complaint"),
  [
    (b"cos\nsystem\n(S'true'\ntR.", "refused: it names 'os system'"),
    (b"\x80\x02]q\x01.", "expected a dict"),
    ({"data": PLANES}, "expected a dict with labels"),
    ({"data": PLANES, "labels": [1]}, "expected 2 integers as labels"),
    ({"data": PLANES, "labels": [1, 256]}, "row 1: expected a label 0..255"),
    ({"data": PLANES, "labels": [1, "a"]}, "expected a list of integers"),
    ({"data": [1], "labels": [1]}, "expected a numpy array with 2 axes"),
  ],
)
def test_anything_but_a_batch_is_refused(tmp_path, batch, complaint):
  batches = {"cifar-10-batches-py/test_batch": batch}
  path = write_cifar(tmp_path, "cifar-10-python.tar.gz", batches)
  with pytest.raises(DataError) as caught:
    unpickle.convert([path])
  assert f"{path}/cifar-10-batches-py/test_batch: " in str(caught.value)
  assert complaint in str(caught.value)
  assert list(tmp_path.iterdir()) == [path]


def test_three_caches_become_one_file(folder, capsys):
  miniature.write_three(folder)
  unpickle.main([str(path) for path in sorted(folder.glob("*.pkl"))])
  assert capsys.readouterr().out == f"{folder / 'miniimagenet_84.npz'}\n"
  miniature.assert_is_the_small_set(
    mini_imagenet.load(folder, **miniature.SETTINGS)
  )


def test_five_files_become_one_that_keeps_their_splits(folder):
  miniature.write_five(folder)
  unpickle.convert(sorted(folder.glob("*.pickle")))
  data = mini_imagenet.load(folder, image_size=8)
  assert data.base_val.names == ("0", "1")
  assert (data.val.names, data.test.names) == (("2",), ("3", "4"))
  for number, split in enumerate(data.splits().values()):
    assert set(split.counts()) == {3}
    for image, label in zip(split.data, split.labels, strict=True):
      assert split.names[label] == str(image[0, 0, 0])
      expected = miniature.picture(image[0, 0, 0], image[0, 0, 1], number)
      np.testing.assert_array_equal(image, expected)


def test_an_existing_file_is_replaced_only_by_force(folder, capsys):
  files = write_cache(folder, {"image_data": DATA, "class_dict": {"n": [0]}})
  target = writers.write(folder / "miniimagenet_84.npz", b"mine")
  with pytest.raises(SystemExit) as caught:
    unpickle.main([*map(str, files)])
  assert caught.value.code == 2
  assert f"error: {target} exists; --force" in capsys.readouterr().err
  assert target.read_bytes() == b"mine"
  miniature.write_three(folder)
  unpickle.main(["--force", *map(str, files)])
  assert target.read_bytes() != b"mine"


@pytest.mark.parametrize(
  ("content", "complaint"),
  [
    (b"", "the file is empty"),
    (b"cos\nsystem\n(S'touch ran'\ntR.", "refused: it names 'os system'"),
    (b"\x80\x02]q\x01.", "expected a dict"),
    ({"labels": [1]}, "expected a dict with data"),
    ({"data": DATA}, "expected a dict with labels"),
    ({"data": DATA, "labels": [1]}, "expected 3 integers as labels"),
    ({"data": DATA, "labels": ["a"]}, "list of integers as labels"),
    ({"data": DATA[0], "labels": [1]}, "a numpy array with 4 axes"),
    ({"data": DATA[:, :1], "labels": [1]}, "got [3, 1, 8, 3]"),
    ({"class_dict": {"a": [0]}}, "expected a dict with image_data"),
    ({"image_data": DATA, "class_dict": [1]}, "expected a dict as class_dict"),
    (
      {"image_data": DATA, "class_dict": {"a": [0, 1, 3]}},
      "expected a label 0..2, got 3",
    ),
    (
      {"image_data": DATA, "class_dict": {"a": [0, 1], "b": [1, 2]}},
      "image 1 is in two classes",
    ),
    ({"image_data": DATA, "class_dict": {"a": [0, 2]}}, "image 1 is in no"),
    (
      {"image_data": DATA, "class_dict": {"a": [0, "b"]}},
      "list of integers as the images of class 'a'",
    ),
  ],
)
def test_anything_but_images_is_refused(
  folder, monkeypatch, content, complaint
):
  monkeypatch.chdir(folder)
  files = write_cache(folder, content)
  with pytest.raises(DataError) as caught:
    unpickle.convert(files)
  assert "mini-imagenet-cache-test.pkl: " in str(caught.value)
  assert complaint in str(caught.value)
  assert sorted(folder.iterdir()) == files


def test_incomplete_and_unknown_files_are_errors(folder):
  miniature.write_three(folder)
  files = sorted(folder.glob("*.pkl"))
  for wrong in (files[:2], [*files, folder / "a.pkl"], [folder / "a.npz"]):
    with pytest.raises(DataError, match=r"all of mini-imagenet-cache-\{train"):
      unpickle.convert(wrong)
  files[0].unlink()
  with pytest.raises(DataError, match="no such file"):
    unpickle.convert(files)


def test_damaged_pickles_are_read_or_refused():
  content = {"image_data": DATA, "class_dict": {"n2": [0, 2], "n1": [1]}}
  failures = 0
  for data in writers.damaged_copies(writers.python2_pickle(content), 150):
    try:
      unpickle._images(inert_pickle.load(data))
    except DataError:
      failures += 1
  assert failures >= 150
