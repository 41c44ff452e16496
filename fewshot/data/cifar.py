"""CIFAR-FS and FC100: two ways to divide the 100 classes of CIFAR-100.

CIFAR-FS divides the classes at random, 64 / 16 / 20. FC100 divides the 20
superclasses, 12 / 4 / 4, so novel classes are of other kinds than base classes.
CIFAR's training images of the base classes are base_train, but for some set
aside for base_val, and its test images base_test; of the other classes, all 600
images are used.
"""

import pathlib
import re
from typing import NamedTuple

import numpy as np

from data_files import disk, inert_pickle, official, prepared
from data_files.errors import DataError
from fewshot.data import checks, cifar_classes, dividing
from fewshot.data.dataset import Dataset, Split

_TFDS = "cifar100"
_FOLDERS = ("", "cifar100", "cifar-100")
_SIDE = 32
_BYTES = 3 * _SIDE * _SIDE
_BINARY = re.compile(r"cifar-100-binary/(train|test)\.bin")
_PYTHON = re.compile(r"cifar-100-python/(train|test)")


class _Images(NamedTuple):
  """CIFAR's training or test images, uint8 [n 32 32 3]."""

  data: np.ndarray
  coarse: np.ndarray
  fine: np.ndarray


def load(
  name: str,
  data_dir: pathlib.Path | None,
  *,
  num_base_val: int = 50,
  seed: int = 0,
) -> Dataset:
  """Reads CIFAR-100 and divides it.

  Args:
    name: "cifar-fs" or "fc100".
    data_dir: folder with one of these, by itself or in cifar100:
      cifar-100-binary.tar.gz, cifar-100-python.tar.gz, the folder of either
      (cifar-100-binary, cifar-100-python), or what tensorflow_datasets
      prepared.
    num_base_val: training images of each base class to set aside to select by.
    seed: the same seed sets the same images aside.
  """
  checks.at_least(1, num_base_val=num_base_val)
  checks.at_least(0, seed=seed)
  path, pattern = disk.find(
    name,
    data_dir,
    _FOLDERS,
    _READERS,
    f"Fetch {official.CIFAR100_BINARY.url} into that folder; it need not be"
    " unpacked",
  )
  train, test = _READERS[pattern](path)
  try:
    return _divided(name, train, test, num_base_val, seed)
  except DataError as error:
    raise disk.damaged(path, error) from error


def _divided(
  name: str, train: _Images, test: _Images, num_base_val: int, seed: int
) -> Dataset:
  everything = _Images(*map(np.concatenate, zip(train, test, strict=True)))
  if name == "fc100":
    base, val, novel = cifar_classes.fc100(_superclasses(everything))
  else:
    base, val, novel = cifar_classes.cifar_fs()
  base_test = _select(test, base)
  base_train, base_val = dividing.hold_out_splits(
    _select(train, base), [num_base_val], seed
  )
  others = (_select(everything, classes) for classes in (val, novel))
  return Dataset(name, base_train, base_val, base_test, *others)


def _select(images: _Images, classes: list[int]) -> Split:
  return dividing.select(images.data, images.fine, cifar_classes.FINE, classes)


def _superclasses(images: _Images) -> np.ndarray:
  """The superclass of each class [100], as the images have it."""
  of_class = np.full(len(cifar_classes.FINE), -1)
  of_class[images.fine] = images.coarse
  wrong = np.flatnonzero(of_class[images.fine] != images.coarse)
  if wrong.size:
    fine = cifar_classes.FINE[images.fine[wrong[0]]]
    raise DataError(f"the class {fine!r} is in two superclasses")
  return of_class


def _parse_binary(data: bytes) -> _Images:
  """Records of two labels and three planes of color."""
  size = 2 + _BYTES
  if len(data) % size:
    raise DataError(
      f"expected records of {size} bytes each, got {len(data)} bytes"
    )
  records = np.frombuffer(data, np.uint8).reshape(-1, size)
  return _checked(records[:, 2:], records[:, 0], records[:, 1])


def _parse_python(data: bytes) -> _Images:
  """A pickled dict: lists of labels, and data, an array of three planes."""
  batch = inert_pickle.load(data)
  coarse, fine = (
    inert_pickle.integers(inert_pickle.field(batch, key), key)
    for key in ("coarse_labels", "fine_labels")
  )
  planes = inert_pickle.bytes_array(inert_pickle.field(batch, "data"), axes=2)
  return _checked(planes, coarse, fine)


def _checked(
  planes: np.ndarray, coarse: np.ndarray, fine: np.ndarray
) -> _Images:
  if planes.shape[1] != _BYTES:
    raise DataError(f"expected {_BYTES} bytes an image, got {planes.shape[1]}")
  for labels, names in (
    (coarse, cifar_classes.COARSE),
    (fine, cifar_classes.FINE),
  ):
    if len(labels) != len(planes):
      raise DataError(f"{len(planes)} images, {len(labels)} labels")
    wrong = np.flatnonzero((labels < 0) | (labels >= len(names)))
    if wrong.size:
      raise DataError(
        f"record {wrong[0]}: expected a label 0..{len(names) - 1},"
        f" got {labels[wrong[0]]}"
      )
  images = np.moveaxis(planes.reshape(-1, 3, _SIDE, _SIDE), 1, -1)
  return _Images(
    np.ascontiguousarray(images), coarse.astype(np.int32), fine.astype(np.int32)
  )


def _read_binary(path: pathlib.Path) -> list[_Images]:
  return disk.parsed(path, _BINARY, _parse_binary, ("train", "test"))


def _read_python(path: pathlib.Path) -> list[_Images]:
  return disk.parsed(path, _PYTHON, _parse_python, ("train", "test"))


def _read_prepared(shard: pathlib.Path) -> list[_Images]:
  return [
    _read_prepared_split(shard.parent, split) for split in ("train", "test")
  ]


def _read_prepared_split(folder: pathlib.Path, split: str) -> _Images:
  images, coarse, fine = [], [], []
  for where, example in prepared.examples(folder, _TFDS, split):
    pixels = images.png(where, prepared.content(where, example, "image"))
    if pixels.shape != (_SIDE, _SIDE, 3) or pixels.dtype != np.uint8:
      raise DataError(
        f"{where}: expected an image of 32 x 32 x 3 bytes,"
        f" got {pixels.dtype} {list(pixels.shape)}"
      )
    images.append(pixels)
    count = len(cifar_classes.COARSE)
    coarse.append(prepared.label(where, example, count, "coarse_label"))
    fine.append(prepared.label(where, example, len(cifar_classes.FINE)))
  return _Images(
    np.stack(images), np.array(coarse, np.int32), np.array(fine, np.int32)
  )


_READERS = {
  "cifar-100-binary": _read_binary,
  "cifar-100-binary.tar.gz": _read_binary,
  "cifar-100-python": _read_python,
  "cifar-100-python.tar.gz": _read_python,
  "cifar100-train.*-of-*": _read_prepared,
  "*/cifar100-train.*-of-*": _read_prepared,
}
