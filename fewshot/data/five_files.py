"""The files of the protocol with base classes, converted to .npz.

Each has arrays data, uint8 [n height width 3], and labels, integers or strings
[n]. The base classes are in three of them, the others have classes of their
own.
"""

import pathlib

import numpy as np

from data_files import disk
from data_files.errors import DataError
from fewshot.data.dataset import Dataset, Split

PREFIX = "miniImageNet_category_split_"
TEST = f"{PREFIX}test.npz"
_PARTS = (
  "train_phase_train",
  "train_phase_val",
  "train_phase_test",
  "val",
  "test",
)


def load(name: str, folder: pathlib.Path, side: int) -> Dataset:
  """All five files of a folder."""
  splits = [read(folder / f"{PREFIX}{part}.npz", side) for part in _PARTS]
  try:
    return Dataset(name, *splits)
  except DataError as error:
    raise DataError(f"{folder}: {error}") from error


def read(path: pathlib.Path, side: int) -> Split:
  """One file; classes are in the order of their labels."""
  if not path.exists():
    raise DataError(
      f"{path}: no such file; python -m fewshot.convert makes it of a pickle"
    )
  data, labels = disk.arrays(path, ("data", "labels"))
  images = data.dtype == np.uint8 and data.ndim == 4 and data.shape[3] == 3
  if not images or data.shape[1] != data.shape[2]:
    raise disk.damaged(
      path,
      f"expected data as uint8 [n side side 3], got {data.dtype}"
      f" {list(data.shape)}",
    )
  if labels.dtype.kind not in "iuU" or labels.shape != data.shape[:1]:
    raise disk.damaged(
      path,
      f"expected {len(data)} integers or strings as labels, got"
      f" {labels.dtype} {list(labels.shape)}",
    )
  if data.shape[1] != side:
    full = data
    data = images.stack(
      lambda i: images.resized(full[i], side), (len(full), side, side, 3)
    )
  names, numbers = np.unique(labels, return_inverse=True)
  try:
    return Split(data, numbers.astype(np.int32), tuple(map(str, names)))
  except DataError as error:
    raise disk.damaged(path, error) from error
