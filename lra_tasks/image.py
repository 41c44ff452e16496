"""Image: what a small gray picture shows, read pixel by pixel (CIFAR-10).

An id is a pixel's brightness, 0..255; the picture's rows follow one another. As
in the benchmark, the last tenth of the training images is the validation split.
"""

import pathlib

import numpy as np

from data_files import cifar, disk, official, tfds_source
from lra_tasks import rows, task

_CLASSES = 10
_SIDE = 32
_FILES = (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch")

# Gray images, uint8 [n 32 32], and their labels [n].
_Images = tuple[np.ndarray, np.ndarray]


def make_task(data_dir: pathlib.Path | None) -> task.Task:
  """The images as a task.

  Args:
    data_dir: folder with one of these, directly or in cifar10:
      cifar-10-binary.tar.gz, cifar10_gray.npz (x_train, y_train, x_test,
      y_test), or cifar10 as prepared by TFDS. None to look where TFDS keeps
      its data.
  """
  path, reader = tfds_source.find(
    "image",
    data_dir,
    ("", "cifar10"),
    {"cifar-10-binary.tar.gz": _read_archive, "cifar10_gray.npz": _read_npz},
    ("cifar10", _read_prepared),
    f"download {official.CIFAR10.url} into a folder, without unpacking it",
  )
  (images, labels), test = reader(path)
  cut = round(0.9 * len(images))
  return task.Task(
    name="image",
    vocab_size=256,
    num_classes=_CLASSES,
    max_length=_SIDE * _SIDE,
    is_pair=False,
    train=rows.ImageRows(images[:cut], labels[:cut]),
    validation=rows.ImageRows(images[cut:], labels[cut:]),
    test=rows.ImageRows(*test),
  )


def gray(colors: np.ndarray) -> np.ndarray:
  """The brightness of uint8 [... 3], as in tf.image.rgb_to_grayscale.

  The weighted sum of colors in 0..1 is multiplied by 255.5 and truncated, which
  differs from rounding: a sum of 100.7 / 255 becomes 100.
  """
  weights = np.array([0.2989, 0.5870, 0.1140], np.float32)
  scale = np.float32(1 / 255)
  luma = sum(
    colors[..., i].astype(np.float32) * scale * weights[i] for i in range(3)
  )
  return (luma * np.float32(255.5)).astype(np.uint8)


def _read_archive(path: pathlib.Path) -> tuple[_Images, _Images]:
  *train, test = map(_gray, cifar.read_archive(path, _FILES, [_CLASSES]))
  images, labels = map(np.concatenate, zip(*train, strict=True))
  return (images, labels), test


def _read_prepared(folder: pathlib.Path) -> list[_Images]:
  return [*map(_gray, cifar.read_prepared(folder, ["label"], [_CLASSES]))]


def _gray(batch: cifar.Batch) -> _Images:
  return gray(batch.images), batch.labels[0]


def _read_npz(path: pathlib.Path) -> list[_Images]:
  splits = []
  for split in ("train", "test"):
    images, labels = disk.arrays(path, (f"x_{split}", f"y_{split}"))
    if images.dtype != np.uint8 or images.shape[1:] != (_SIDE, _SIDE):
      raise disk.damaged(
        path,
        f"expected x_{split} uint8 [n 32 32], got {disk.described(images)}",
      )
    with disk.about(path):
      disk.check_labels(labels, len(images), _CLASSES)
    splits.append((images, labels))
  return splits
