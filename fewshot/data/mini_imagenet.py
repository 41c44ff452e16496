"""mini-ImageNet: 100 classes of photographs, 600 images each, 84 x 84.

The classes are divided 64 / 16 / 20 as in Ravi and Larochelle. There are two
layouts.

1. Their `train.csv`, `val.csv` and `test.csv` with the columns filename and
   label, with the images in the folder images, in one folder per class, or next
   to the .csv files.

2. One file `miniimagenet_84.npz` with these arrays:

     blob         uint8, all encoded images (WebP, JPEG, PNG) one after another
     offsets      int [n + 1], where each image starts in blob, and the end
     label        int [n], positions in classes
     split        int [n]: 0 base, 1 val, 2 novel; 3 and 4 for images of base
                  classes that are base_val and base_test
     classes      str [k], names
     class_split  int [k], 0 base, 1 val, 2 novel

   `python -m data_files.unpickle` makes it from the pickles in circulation.

Without images of split 3 and 4, images of the base classes are held out for
base_val and base_test.
"""

import os
import pathlib

import numpy as np

from data_files import disk, files_read, images
from data_files.errors import DataError
from fewshot.data import checks, csv_rows, decoded, dividing
from fewshot.data.dataset import Dataset, Split

_NAME = "mini-imagenet"
_FOLDERS = ("", "miniimagenet", "mini-imagenet", "miniImageNet")
_ADVICE = (
  "There is no official archive: put your copy of mini-ImageNet into that"
  " folder, in a layout described in fewshot/data/mini_imagenet.py. Pickles are"
  " converted by python -m data_files.unpickle, which runs none of their code"
)
_SIDE = 84
_BASE = (0, 3, 4)
_BASE_OF_SESSIONS = 60
_LONGEST_NAME = 200
# Images of all classes, labels, names, and the split of each image.
_Images = tuple[np.ndarray, np.ndarray, list[str], np.ndarray]


def load(
  data_dir: pathlib.Path | None,
  *,
  image_size: int = _SIDE,
  num_base_val: int = 50,
  num_base_test: int = 50,
  sessions: bool = False,
  seed: int = 0,
) -> Dataset:
  """Reads the images, which are decoded once and kept in the cache.

  Args:
    data_dir: folder with one of the layouts above, directly or in
      miniimagenet.
    image_size: side of the images.
    num_base_val: images of each base class to hold out for validation, unless
      the file says which.
    num_base_test: images of each base class to hold out for testing, likewise.
    sessions: whether to divide the classes for learning in sessions: the first
      60 of base are the base classes, and all others, 40, are test. Held-out
      images of the base classes, turned by 90 degrees, stand in for val.
    seed: the same seed holds out the same images.
  """
  checks.at_least(8, image_size=image_size)
  checks.at_least(1, num_base_val=num_base_val, num_base_test=num_base_test)
  checks.at_least(0, seed=seed)
  readers = {"miniimagenet_84.npz": _read_blob, "train.csv": _read_tables}
  path, reader = disk.find(_NAME, data_dir, _FOLDERS, readers, _ADVICE)
  with disk.about(path):
    data, labels, names, split = reader(path, image_size)
    sizes = [num_base_val, num_base_test]
    if sessions:
      return _for_sessions(data, labels, names, split, sizes, seed)
    is_base = np.isin(split, _BASE)
    base, val, test = (
      dividing.select(data, labels, names, np.unique(labels[rows]))
      for rows in (is_base, split == 1, split == 2)
    )
    if (split > 2).any():
      parts = [split[is_base] == number for number in _BASE]
      splits = [Split(base.data[p], base.labels[p], base.names) for p in parts]
    else:
      splits = dividing.hold_out_splits(base, sizes, seed)
    return Dataset(_NAME, *splits, val, test)


def _for_sessions(data, labels, names, split, sizes, seed) -> Dataset:
  """60 base classes, and all others in test; val has turned base classes."""
  order = [
    np.unique(labels[np.isin(split, part)]) for part in (_BASE, (1,), (2,))
  ]
  order = np.concatenate(order)
  base, test = (
    dividing.select(data, labels, names, part)
    for part in (order[:_BASE_OF_SESSIONS], order[_BASE_OF_SESSIONS:])
  )
  splits = dividing.hold_out_splits(base, sizes, seed)
  val = dividing.turned(splits[1], 1)
  return Dataset(_NAME, *splits, val, test, has_stand_ins=True)


def _read_tables(path: pathlib.Path, side: int) -> _Images:
  """The images that train.csv, val.csv and test.csv name."""
  paths, labels, split = [], [], []
  numbers, split_of = {}, {}
  for number, part in enumerate(("train", "val", "test")):
    file = path.with_name(f"{part}.csv")
    for where, (name, label) in csv_rows.rows(file, ("filename", "label")):
      if split_of.setdefault(label, number) != number:
        raise DataError(
          f"{where}: class {label!r:.60} is in another file as well"
        )
      paths.append(_find_image(where, path.parent, part, name, label))
      labels.append(numbers.setdefault(label, len(numbers)))
      split.append(number)
  data = decoded.keep_files(_NAME, paths, side)
  return data, np.array(labels, np.int32), list(numbers), np.array(split)


def _find_image(
  where: str, root: pathlib.Path, part: str, name: str, label: str
) -> pathlib.Path:
  for field in (name, label):
    if pathlib.PurePath(field).name != field or len(field) > _LONGEST_NAME:
      raise DataError(
        f"{where}: expected a short name without a path, got {field!r:.60}"
      )
  folders = ("images", "", f"images/{label}", label, f"{part}/{label}")
  for folder in folders:
    path = root / folder / name
    if os.path.isfile(path):
      return path
  places = ", ".join(str(root / folder) for folder in folders)
  raise DataError(f"{where}: no image {name!r:.60} in {places}")


def _read_blob(path: pathlib.Path, side: int) -> _Images:
  """The one file with encoded images."""
  names = ("label", "split", "classes", "class_split")
  label, split, classes, class_split = disk.arrays(path, names)
  if classes.dtype.kind != "U" or classes.ndim != 1:
    raise DataError(f"expected classes as str, got {disk.described(classes)}")
  disk.check_labels(class_split, len(classes), 3)
  disk.check_labels(label, label.size, len(classes))
  disk.check_labels(split, label.size, 5)
  kinds = np.where(np.isin(split, _BASE), 0, split)
  wrong = np.flatnonzero(kinds != class_split[label])
  if wrong.size:
    raise DataError(f"split[{wrong[0]}] contradicts class_split")
  empty = np.flatnonzero(np.bincount(label, minlength=len(classes)) == 0)
  if empty.size:
    raise DataError(f"class {str(classes[empty[0]])!r:.60} has no images")

  def loader():
    blob, offsets = disk.arrays(path, ("blob", "offsets"))
    _check_offsets(blob, offsets, len(label))

    def decode(i: int) -> np.ndarray:
      data = blob[offsets[i] : offsets[i + 1]].tobytes()
      return images.square(f"{path}, image {i}", data, side)

    return decode

  shape = (len(label), side, side, 3)
  data = decoded.keep(_NAME, files_read.stamp(path), shape, loader)
  return data, label.astype(np.int32), classes.tolist(), split


def _check_offsets(blob: np.ndarray, offsets: np.ndarray, count: int) -> None:
  if blob.dtype != np.uint8 or blob.ndim != 1:
    raise DataError(f"expected blob as uint8 [n], got {disk.described(blob)}")
  if offsets.dtype.kind not in "iu" or offsets.shape != (count + 1,):
    raise DataError(
      f"expected {count + 1} integers as offsets, one more than labels,"
      f" got {disk.described(offsets)}"
    )
  wrong = np.flatnonzero(offsets[1:] <= offsets[:-1])
  if wrong.size:
    raise DataError(f"offsets do not increase after {wrong[0]}")
  if offsets[0] != 0 or offsets[-1] != len(blob):
    raise DataError(
      f"offsets go from {offsets[0]} to {offsets[-1]}, blob from 0 to"
      f" {len(blob)}"
    )
