"""Image: what a small gray picture shows, read pixel by pixel (CIFAR-10).

An id is a pixel's brightness, 0..255; the picture's rows follow one another. As
in the benchmark, the last tenth of the training images is the validation split.
"""

import pathlib
import re
from collections.abc import Callable

import numpy as np

from data_files import disk, errors, inert_pickle, official, prepared
from lra_tasks import rows, task

_NAME = "cifar10"
_CLASSES = 10
_SIDE = 32
_PIXELS = _SIDE * _SIDE
_TRAIN_BATCHES = tuple(f"data_batch_{number}" for number in range(1, 6))
_TEST_BATCH = "test_batch"
_BINARY = re.compile(r"cifar-10-batches-bin/(data_batch_[1-5]|test_batch)\.bin")
_PYTHON = re.compile(r"cifar-10-batches-py/(data_batch_[1-5]|test_batch)")

# Gray images, uint8 [n pixels], and their labels [n].
_Images = tuple[np.ndarray, np.ndarray]


def make_task(data_dir: pathlib.Path | None) -> task.Task:
  """The task cifar10.

  Args:
    data_dir: folder with one of these, by itself or in cifar10:
      cifar-10-binary.tar.gz, cifar-10-python.tar.gz, the folder of either
      (cifar-10-batches-bin, cifar-10-batches-py), cifar10_gray.npz (x_train,
      y_train, x_test, y_test), or what tensorflow_datasets prepared.
  """
  path, pattern = disk.find(
    _NAME,
    data_dir,
    ("", _NAME),
    _READERS,
    f"Fetch {official.CIFAR10_BINARY.url} into that folder; it need not be"
    " unpacked",
  )
  (images, labels), test = _READERS[pattern](path)
  cut = round(0.9 * len(images))
  return task.Task(
    name=_NAME,
    vocab_size=256,
    num_classes=_CLASSES,
    max_length=_PIXELS,
    is_pair=False,
    train=rows.ImageRows(images[:cut], labels[:cut]),
    validation=rows.ImageRows(images[cut:], labels[cut:]),
    test=rows.ImageRows(*test),
  )


def gray(red: np.ndarray, green: np.ndarray, blue: np.ndarray) -> np.ndarray:
  """The brightness of uint8 colors, as tf.image.rgb_to_grayscale has it.

  The weighted sum of colors in 0..1 is multiplied by 255.5 and then cut off,
  which is not the same as rounding: a sum of 100.7 / 255 becomes 100.
  """
  weights = np.array([0.2989, 0.5870, 0.1140], np.float32)
  scale = np.float32(1 / 255)
  luma = sum(
    color.astype(np.float32) * scale * weight
    for color, weight in zip((red, green, blue), weights, strict=True)
  )
  return (luma * np.float32(255.5)).astype(np.uint8)


def _read_batches(
  path: pathlib.Path,
  wanted: re.Pattern[str],
  parse: Callable[[bytes], _Images],
) -> tuple[_Images, _Images]:
  """From an archive or its folder: five training batches and a test batch."""
  names = (*_TRAIN_BATCHES, _TEST_BATCH)
  *train, test = disk.parsed(path, wanted, parse, names)
  images, labels = map(np.concatenate, zip(*train, strict=True))
  return (images, labels), test


def _parse_binary(data: bytes) -> _Images:
  """Records of a label and three planes of color."""
  size = 1 + 3 * _PIXELS
  if len(data) % size:
    raise errors.DataError(
      f"expected records of {size} bytes each, got {len(data)} bytes"
    )
  records = np.frombuffer(data, np.uint8).reshape(-1, size)
  return _from_planes(records[:, 1:], records[:, 0])


def _parse_python(data: bytes) -> _Images:
  """A pickled dict: labels, a list, and data, an array of three planes."""
  batch = inert_pickle.load(data)
  labels = inert_pickle.integers(inert_pickle.field(batch, "labels"), "labels")
  planes = inert_pickle.bytes_array(inert_pickle.field(batch, "data"), axes=2)
  return _from_planes(planes, labels)


def _from_planes(planes: np.ndarray, labels: np.ndarray) -> _Images:
  if planes.shape[1] != 3 * _PIXELS:
    raise errors.DataError(
      f"expected {3 * _PIXELS} bytes an image, got {planes.shape[1]}"
    )
  images = gray(*np.split(planes, 3, axis=1))
  return _checked(images, labels)


def _checked(images: np.ndarray, labels: np.ndarray) -> _Images:
  if len(images) != len(labels) or not len(images):
    raise errors.DataError(f"{len(images)} images, {len(labels)} labels")
  wrong = np.flatnonzero((labels < 0) | (labels >= _CLASSES))
  if wrong.size:
    raise errors.DataError(
      f"record {wrong[0]}: expected a label 0..9, got {labels[wrong[0]]}"
    )
  return images, labels


def _read_binary(path: pathlib.Path) -> tuple[_Images, _Images]:
  return _read_batches(path, _BINARY, _parse_binary)


def _read_python(path: pathlib.Path) -> tuple[_Images, _Images]:
  return _read_batches(path, _PYTHON, _parse_python)


def _read_npz(path: pathlib.Path) -> tuple[_Images, _Images]:
  splits = []
  for split in ("train", "test"):
    images, labels = disk.arrays(path, (f"x_{split}", f"y_{split}"))
    if images.dtype != np.uint8 or images.shape[1:] != (_SIDE, _SIDE):
      raise disk.damaged(
        path,
        f"expected x_{split} uint8 [n 32 32],"
        f" got {images.dtype} {list(images.shape)}",
      )
    if labels.dtype.kind not in "iu" or labels.ndim != 1:
      raise disk.damaged(
        path, f"expected integers [n], got y_{split} {labels.dtype}"
      )
    try:
      splits.append(_checked(images, labels))
    except errors.DataError as error:
      raise disk.damaged(path, f"{split}: {error}") from error
  return tuple(splits)


def _read_prepared(shard: pathlib.Path) -> tuple[_Images, _Images]:
  splits = []
  for split in ("train", "test"):
    images, labels = [], []
    for where, example in prepared.examples(shard.parent, _NAME, split):
      png = prepared.content(where, example, "image")
      pixels = images.png(where, png)
      if pixels.shape != (_SIDE, _SIDE, 3) or pixels.dtype != np.uint8:
        raise errors.DataError(
          f"{where}: expected an image of 32 x 32 x 3 bytes,"
          f" got {pixels.dtype} {list(pixels.shape)}"
        )
      images.append(pixels)
      labels.append(prepared.label(where, example, _CLASSES))
    red, green, blue = np.moveaxis(np.stack(images), -1, 0)
    splits.append((gray(red, green, blue), np.array(labels)))
  return tuple(splits)


_READERS = {
  "cifar-10-batches-bin": _read_binary,
  "cifar-10-binary.tar.gz": _read_binary,
  "cifar-10-batches-py": _read_python,
  "cifar-10-python.tar.gz": _read_python,
  "cifar10_gray.npz": _read_npz,
  "cifar10-train.*-of-*": _read_prepared,
  "*/cifar10-train.*-of-*": _read_prepared,
}
