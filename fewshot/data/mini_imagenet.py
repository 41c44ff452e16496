"""mini-ImageNet: 100 classes of photographs, 600 images each, 84 x 84.

The classes are divided 64 / 16 / 20 as by Ravi and Larochelle. There are three
layouts.

1. One file `miniimagenet_84.npz` with these arrays:

     blob         uint8, all encoded images (WebP, JPEG, PNG) one after another
     offsets      int [n + 1], where each image begins in blob, and the end
     label        int [n], positions in classes
     split        int [n], of the image's class: 0 base, 1 val, 2 novel
     classes      str [k], names
     class_split  int [k], 0 base, 1 val, 2 novel

2. `train.csv`, `val.csv` and `test.csv` with the columns filename and label,
   and the images in the folder images, in one folder a class, or beside.

3. The five files of the protocol with base classes, after conversion by
   `python -m fewshot.convert`, with arrays data, uint8 [n 84 84 3], and labels:

     miniImageNet_category_split_train_phase_train.npz
     miniImageNet_category_split_train_phase_val.npz
     miniImageNet_category_split_train_phase_test.npz
     miniImageNet_category_split_val.npz
     miniImageNet_category_split_test.npz

   or the three files with all images, after the same conversion:

     mini-imagenet-cache-train.npz, -val.npz, -test.npz

In all but the five files, images of the base classes are set aside for base_val
and base_test.
"""

import pathlib

import numpy as np

from data_files import disk
from data_files.errors import DataError
from fewshot.data import checks, csv_rows, decoded, dividing, five_files
from fewshot.data.dataset import Dataset

_NAME = "mini-imagenet"
_FOLDERS = ("", "miniimagenet", "mini-imagenet", "miniImageNet")
_ADVICE = (
  "There is no official archive: put your copy of mini-ImageNet into that"
  " folder, in one of the layouts described in fewshot/mini_imagenet.py"
)
_SIDE = 84
# Images of all classes, labels, names, and the split of each class: 0, 1, 2.
_Classes = tuple[np.ndarray, np.ndarray, list[str], np.ndarray]


def load(
  data_dir: pathlib.Path | None,
  *,
  image_size: int = _SIDE,
  num_base_val: int | None = None,
  num_base_test: int | None = None,
  seed: int | None = None,
) -> Dataset:
  """Reads the images; encoded ones are decoded once and kept in the cache.

  Args:
    data_dir: folder with one of the layouts above, by itself or in
      miniimagenet.
    image_size: side of the images.
    num_base_val: images of each base class to set aside to select by, 50 by
      default. The protocol's five files have them already.
    num_base_test: images of each base class to set aside to report, likewise.
    seed: the same seed, by default 0, sets the same images aside.
  """
  checks.at_least(8, image_size=image_size)
  given = {
    "num_base_val": num_base_val,
    "num_base_test": num_base_test,
    "seed": seed,
  }
  given = {name: value for name, value in given.items() if value is not None}
  patterns = [*_READERS, five_files.TEST]
  try:
    path, pattern = disk.find(_NAME, data_dir, _FOLDERS, patterns, _ADVICE)
  except DataError:
    _refuse_pickles(data_dir)
    raise
  if pattern == five_files.TEST:
    if given:
      raise DataError(
        f"{path}: no {', '.join(given)} with the five files, in which the"
        " images of the base classes are divided already"
      )
    return five_files.load(_NAME, path.parent, image_size)
  return _divided(path, _READERS[pattern](path, image_size), **given)


def _refuse_pickles(data_dir: pathlib.Path | None) -> None:
  for folder in _FOLDERS if data_dir else ():
    for pattern in _PICKLES:
      for path in sorted((data_dir / folder).glob(pattern)):
        raise DataError(
          f"{path}: a pickle can run any program when it is loaded. Convert it"
          " once by python -m fewshot.convert, which runs nothing, with the"
          " pickles as its arguments"
        )


def _divided(
  path: pathlib.Path,
  classes: _Classes,
  num_base_val: int = 50,
  num_base_test: int = 50,
  seed: int = 0,
) -> Dataset:
  checks.at_least(1, num_base_val=num_base_val, num_base_test=num_base_test)
  checks.at_least(0, seed=seed)
  images, labels, names, split = classes
  parts = [np.flatnonzero(split == number) for number in range(3)]
  sizes = [num_base_val, num_base_test]
  try:
    return dividing.divide(_NAME, images, labels, names, parts, sizes, seed)
  except DataError as error:
    raise disk.damaged(path, error) from error


def _read_tables(path: pathlib.Path, side: int) -> _Classes:
  """The images that train.csv, val.csv and test.csv name."""
  paths, labels, numbers, split = [], [], {}, []
  for number, part in enumerate(("train", "val", "test")):
    file = path.with_name(f"{part}.csv")
    for where, (name, label) in csv_rows.rows(file, ("filename", "label")):
      paths.append(_find_image(where, path.parent, part, name, label))
      if label not in numbers:
        numbers[label] = len(numbers)
        split.append(number)
      if split[numbers[label]] != number:
        raise DataError(f"{where}: class {label!r} is in another file as well")
      labels.append(numbers[label])
  images = decoded.keep_files(_NAME, paths, side)
  return images, np.array(labels, np.int32), list(numbers), np.array(split)


def _find_image(
  where: str, root: pathlib.Path, part: str, name: str, label: str
) -> pathlib.Path:
  for field in (name, label):
    if pathlib.PurePath(field).name != field:
      raise DataError(f"{where}: expected a name without a folder: {field!r}")
  folders = ("images", "", f"images/{label}", label, f"{part}/{label}")
  for folder in folders:
    path = root / folder / name
    if path.is_file():
      return path
  places = ", ".join(str(root / folder) for folder in folders)
  raise DataError(f"{where}: no image {name!r} in {places}")


def _read_cached(path: pathlib.Path, side: int) -> _Classes:
  """The three converted files that have all images of their classes."""
  images, labels, names, split = [], [], [], []
  for number, part in enumerate(("train", "val", "test")):
    file = path.with_name(f"mini-imagenet-cache-{part}.npz")
    found = five_files.read(file, side)
    images.append(found.data)
    labels.append(found.labels + np.int32(len(names)))
    names += found.names
    split += [number] * len(found.names)
  return np.concatenate(images), np.concatenate(labels), names, np.array(split)


def _read_blob(path: pathlib.Path, side: int) -> _Classes:
  """The one file with encoded images."""
  labels, names, split = _read_index(path)

  def loader():
    blob, offsets = disk.arrays(path, ("blob", "offsets"))
    _check_offsets(path, blob, offsets, len(labels))

    def decode(i: int) -> np.ndarray:
      data = blob[offsets[i] : offsets[i + 1]].tobytes()
      return images.square(f"{path}, image {i}", data, side)

    return decode

  shape = (len(labels), side, side, 3)
  images = decoded.keep(_NAME, decoded.stamp(path), shape, loader)
  return images, labels, names, split


def _read_index(path: pathlib.Path) -> tuple[np.ndarray, list[str], np.ndarray]:
  """Labels and classes, checked against one another."""
  names = ("label", "split", "classes", "class_split")
  label, split, classes, class_split = disk.arrays(path, names)
  for name, array, kinds in (
    ("label", label, "iu"),
    ("split", split, "iu"),
    ("classes", classes, "U"),
    ("class_split", class_split, "iu"),
  ):
    if array.dtype.kind not in kinds or array.ndim != 1:
      raise disk.damaged(
        path,
        f"expected {name} as {'strings' if kinds == 'U' else 'integers'} in"
        f" one axis, got {array.dtype} {list(array.shape)}",
      )
  if len(label) != len(split) or len(classes) != len(class_split):
    raise disk.damaged(
      path,
      f"{len(label)} labels, {len(split)} in split; {len(classes)} classes,"
      f" {len(class_split)} in class_split",
    )
  _expect(path, "label", (label >= 0) & (label < len(classes)), label)
  _expect(path, "class_split", np.isin(class_split, (0, 1, 2)), class_split)
  _expect(path, "split", split == class_split[label], split)
  if set(class_split.tolist()) != {0, 1, 2}:
    raise disk.damaged(path, "class_split needs each of 0, 1 and 2")
  counts = np.bincount(label, minlength=len(classes))
  if not counts.all():
    empty = str(classes[counts.argmin()])
    raise disk.damaged(path, f"class {empty!r} has no image")
  return label.astype(np.int32), classes.tolist(), class_split


def _expect(
  path: pathlib.Path, name: str, right: np.ndarray, values: np.ndarray
) -> None:
  wrong = np.flatnonzero(~right)
  if wrong.size:
    raise disk.damaged(path, f"{name}[{wrong[0]}] cannot be {values[wrong[0]]}")


def _check_offsets(
  path: pathlib.Path, blob: np.ndarray, offsets: np.ndarray, count: int
) -> None:
  if blob.dtype != np.uint8 or blob.ndim != 1:
    raise disk.damaged(path, f"expected blob as uint8 [n], got {blob.dtype}")
  if offsets.dtype.kind not in "iu" or offsets.shape != (count + 1,):
    raise disk.damaged(
      path,
      f"expected {count + 1} integers as offsets, one more than labels,"
      f" got {offsets.dtype} {list(offsets.shape)}",
    )
  wrong = np.flatnonzero(offsets[1:] <= offsets[:-1])
  if wrong.size:
    raise disk.damaged(path, f"offsets do not increase after {wrong[0]}")
  if offsets[0] != 0 or offsets[-1] != len(blob):
    raise disk.damaged(
      path,
      f"offsets go from {offsets[0]} to {offsets[-1]}, blob from 0 to"
      f" {len(blob)}",
    )


_READERS = {
  "miniimagenet_84.npz": _read_blob,
  "train.csv": _read_tables,
  "mini-imagenet-cache-train.npz": _read_cached,
}
_PICKLES = (
  "miniImageNet_category_split_*.pickle",
  "mini-imagenet-cache-*.pkl",
)
