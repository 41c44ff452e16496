"""Your own images: one folder per class.

  DIR/zebra/001.jpg, DIR/zebra/002.png, DIR/lion/..., ...

The classes are divided into base, val and novel ones

- by the file DIR/splits.csv, if it exists, with the columns class and split:
  base, val or novel;
- or by three folders, DIR/base/zebra/..., DIR/val/..., DIR/novel/...;
- or else at random;
- or, of fewer than eight classes, all are base classes, and images turned by 90
  and 180 degrees stand in for val and novel classes.
"""

import pathlib

import numpy as np

from data_files import disk
from data_files.errors import DataError
from fewshot import preprocess
from fewshot.data import checks, csv_rows, decoded, dividing
from fewshot.data.dataset import Dataset, Split

_NAME = "folder"
_SPLITS = ("base", "val", "novel")
_TABLE = "splits.csv"
# Fewer classes than this are all base classes.
_LEAST_TO_DIVIDE = 8
# Of fewer images per class, none are held out.
_LEAST_TO_HOLD_OUT = 4

# Classes of each of _SPLITS, with their folders.
_Parts = dict[str, dict[str, pathlib.Path]]


def load(
  data_dir: pathlib.Path | None,
  *,
  image_size: int = 84,
  min_images: int = 2,
  num_base_val: int | None = None,
  num_base_test: int | None = None,
  val_share: float | None = None,
  novel_share: float | None = None,
  seed: int = 0,
) -> Dataset:
  """Reads the images, cut to a square in the middle, resized, in color.

  Args:
    data_dir: the folder with the classes.
    image_size: side of the images.
    min_images: fewest images that a class may have.
    num_base_val: images of each base class to hold out for validation. None:
      a fifth of the smallest class, at most five; of fewer than four images,
      none, and the training images are used again.
    num_base_test: images of each base class to hold out for testing, likewise.
    val_share: share of validation classes if classes are divided at random,
      0.15 by default.
    novel_share: share of novel classes, likewise, 0.2 by default.
    seed: the same seed divides classes and images in the same way.
  """
  checks.at_least(8, image_size=image_size)
  sizes = {"num_base_val": num_base_val, "num_base_test": num_base_test}
  given = {name: size for name, size in sizes.items() if size is not None}
  checks.at_least(1, min_images=min_images, **given)
  checks.at_least(0, seed=seed)
  if data_dir is None:
    raise DataError(
      f"{_NAME} needs data_dir, a folder with one folder of images per class"
    )
  shares = {"val_share": val_share, "novel_share": novel_share}
  shares = {name: share for name, share in shares.items() if share is not None}
  parts = _find_classes(data_dir, shares, seed)
  names, paths, labels = _files(parts, min_images)
  try:
    images = decoded.keep_files(_NAME, paths, image_size)
  except DataError as error:
    raise DataError(f"{error} (python -m fewshot.inspect lists all)") from error
  ends = np.cumsum([len(folders) for folders in parts.values()])
  numbers = np.split(np.arange(len(names)), ends[:-1])
  with disk.about(data_dir):
    base, *others = (
      dividing.select(images, labels, names, part)
      for part in numbers
      if part.size
    )
    splits = _held_out(base, [num_base_val, num_base_test], seed)
    has_stand_ins = not others
    if has_stand_ins:
      others = [dividing.turned(base, quarters) for quarters in (1, 2)]
    return Dataset(_NAME, *splits, *others, has_stand_ins=has_stand_ins)


def _files(
  parts: _Parts, min_images: int
) -> tuple[list[str], list[pathlib.Path], np.ndarray]:
  """Names of all classes, their files, and the class of each file."""
  names, paths, labels = [], [], []
  for folders in parts.values():
    for name, folder in folders.items():
      found = _images(name, folder, min_images)
      labels += [len(names)] * len(found)
      paths += found
      names.append(name)
  return names, paths, np.array(labels, np.int32)


def _held_out(base: Split, sizes: list[int | None], seed: int) -> list[Split]:
  """Images of the base classes for training, validation and testing."""
  smallest = int(base.counts().min())
  if smallest < _LEAST_TO_HOLD_OUT and sizes == [None, None]:
    return [base] * 3
  usual = max(1, min(5, smallest // 5))
  sizes = [usual if size is None else size for size in sizes]
  return dividing.hold_out_splits(base, sizes, seed)


def _find_classes(
  root: pathlib.Path, shares: dict[str, float], seed: int
) -> _Parts:
  folders = _folders(root)
  if (root / _TABLE).exists():
    parts = _by_table(root / _TABLE, folders)
  elif set(folders) == set(_SPLITS):
    parts = {split: _folders(root / split) for split in _SPLITS}
  elif len(folders) < 2:
    raise DataError(
      f"{root}: {len(folders)} folders with images; few-shot learning needs 2"
      " or more, one for each class (--data_dir)"
    )
  elif len(folders) < _LEAST_TO_DIVIDE and not shares:
    return {"base": folders, "val": {}, "novel": {}}
  else:
    return _at_random(root, folders, seed, **shares)
  if shares:
    raise DataError(
      f"{root}: the classes are already divided, so leave out"
      f" {', '.join(shares)}"
    )
  for split, classes in parts.items():
    if not classes:
      raise DataError(f"{root}: no class in {split}")
  return parts


def _folders(root: pathlib.Path) -> dict[str, pathlib.Path]:
  found = (p for p in root.iterdir() if p.is_dir() and p.name[0] not in "._")
  folders = {path.name: path for path in sorted(found)}
  for name in folders:
    if not name.isprintable():
      raise DataError(f"{root}: a folder has the odd name {ascii(name)[:60]}")
  return folders


def _by_table(path: pathlib.Path, folders: dict[str, pathlib.Path]) -> _Parts:
  parts = {split: {} for split in _SPLITS}
  left = dict(folders)
  for where, (name, split) in csv_rows.rows(path, ("class", "split")):
    if split not in parts:
      raise DataError(
        f"{where}: expected base, val or novel, got {split!r:.60}"
      )
    if name not in left:
      why = "is listed twice" if name in folders else "has no folder"
      raise DataError(f"{where}: class {name!r:.60} {why}")
    parts[split][name] = left.pop(name)
  if left:
    raise DataError(f"{path}: no line for the class {min(left)!r:.60}")
  return parts


def _at_random(
  root: pathlib.Path,
  folders: dict[str, pathlib.Path],
  seed: int,
  val_share: float = 0.15,
  novel_share: float = 0.2,
) -> _Parts:
  for name, share in (("val_share", val_share), ("novel_share", novel_share)):
    if not 0 < share < 1:
      raise DataError(f"expected {name} between 0 and 1, got {share!r}")
  num_val = max(1, round(val_share * len(folders)))
  num_novel = max(1, round(novel_share * len(folders)))
  if num_val + num_novel >= len(folders):
    raise DataError(
      f"{root}: {len(folders)} classes are too few for {num_val} in val,"
      f" {num_novel} novel ones and base classes"
    )
  names = list(folders)
  order = np.random.default_rng(seed).permutation(len(names))
  ends = [len(names) - num_val - num_novel, len(names) - num_novel]
  return {
    split: {names[i]: folders[names[i]] for i in np.sort(numbers)}
    for split, numbers in zip(_SPLITS, np.split(order, ends), strict=True)
  }


def _images(
  name: str, folder: pathlib.Path, minimum: int
) -> list[pathlib.Path]:
  found = preprocess.image_files(folder)
  if len(found) < minimum:
    raise DataError(
      f"{folder}: class {name!r:.60} has {len(found)} images but needs"
      f" {minimum} or more (--config.data_kwargs.min_images)"
    )
  return found
