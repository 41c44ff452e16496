"""CIFAR-10 and CIFAR-100: color images of 32 x 32 pixels with labels."""

import pathlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from data_files import disk, images, tfds_source
from data_files.errors import DataError

SHAPE = (32, 32, 3)
_PIXELS = 32 * 32


class Batch(NamedTuple):
  """Some images, uint8 [n 32 32 3], and their labels, int32 [labels n]."""

  images: np.ndarray
  labels: np.ndarray


def read_archive(
  path: pathlib.Path, names: Sequence[str], num_classes: Sequence[int]
) -> list[Batch]:
  """The files of a published binary archive, in the order of their names.

  Args:
    path: the archive.
    names: names of the files, without folder and ".bin".
    num_classes: number of classes, for each label of an image.
  """
  wanted = re.compile(rf"[^/]+/({'|'.join(names)})\.bin")
  found = {}
  for name, data in disk.members(path, wanted):
    with disk.about(path), disk.about(pathlib.Path(name)):
      batch = wanted.fullmatch(name)[1]
      if batch in found:
        raise DataError("another folder has a file of this name")
      found[batch] = _parse(data, num_classes)
  missing = [name for name in names if name not in found]
  if missing:
    raise disk.damaged(path, f"has no {', '.join(missing)}")
  return [found[name] for name in names]


def read_prepared(
  folder: pathlib.Path, features: Sequence[str], num_classes: Sequence[int]
) -> list[Batch]:
  """The training and test images in a folder prepared by TFDS."""
  return [
    _read_split(folder, split, features, num_classes)
    for split in ("train", "test")
  ]


def _read_split(folder, split, features, num_classes) -> Batch:
  encoded, *labels = tfds_source.read(folder, split, ("image", *features))

  def load(index: int) -> np.ndarray:
    where = f"{folder}, {split} image {index}"
    return images.png(where, encoded[index], SHAPE)

  pixels = images.stack(load, (len(encoded), *SHAPE))
  with disk.about(folder / split):
    return _checked(pixels, np.array(labels), num_classes)


def _parse(data: bytes, num_classes: Sequence[int]) -> Batch:
  """Reads records of one byte per label, then three planes of color."""
  size = len(num_classes) + 3 * _PIXELS
  if len(data) % size:
    raise DataError(
      f"expected records of {size} bytes each, got {len(data)} bytes"
    )
  records = np.frombuffer(data, np.uint8).reshape(-1, size)
  labels, planes = np.split(records, [len(num_classes)], axis=1)
  pixels = np.moveaxis(planes.reshape(-1, 3, *SHAPE[:2]), 1, -1)
  return _checked(np.ascontiguousarray(pixels), labels.T, num_classes)


def _checked(pixels, labels, num_classes) -> Batch:
  for kind, classes in zip(labels, num_classes, strict=True):
    disk.check_labels(kind, len(pixels), classes)
  return Batch(pixels, labels.astype(np.int32))
