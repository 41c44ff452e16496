"""Your own features, from any network: one .npz file.

  features  float [n d]
  labels    integers or strings [n], the classes
  split     for each row [n], or for each class in the order of the sorted
            labels [k]: "base", "val", "novel", or 0, 1, 2

Some rows of the base classes are held out for base_val and base_test.
"""

import pathlib

import numpy as np

from data_files import disk
from data_files.errors import DataError, excerpt
from fewshot.data import checks, dividing
from fewshot.data.dataset import Dataset

_NAME = "features"
_SPLITS = ("base", "val", "novel")


def load(
  data_dir: pathlib.Path | None,
  *,
  num_base_val: int = 5,
  num_base_test: int = 5,
  seed: int = 0,
) -> Dataset:
  """Reads the file.

  Args:
    data_dir: folder with features.npz, or with a single .npz file.
    num_base_val: rows of each base class to hold out for validation.
    num_base_test: rows of each base class to hold out for testing.
    seed: the same seed holds out the same rows.
  """
  checks.at_least(1, num_base_val=num_base_val, num_base_test=num_base_test)
  checks.at_least(0, seed=seed)
  path, _ = disk.find(
    _NAME,
    data_dir,
    ("",),
    dict.fromkeys(("features.npz", "*.npz")),
    "Save arrays features, labels and split with numpy.savez; see"
    " fewshot/data/features.py",
  )
  if path.name != "features.npz" and len(list(path.parent.glob("*.npz"))) > 1:
    raise DataError(f"{path.parent}: several .npz files, none features.npz")
  features, labels, split = disk.arrays(path, ("features", "labels", "split"))
  with disk.about(path):
    rows = _checked_rows(features)
    names, numbers = _classes(labels, len(rows))
    of_class = _split_of_classes(split, numbers, names)
    parts = [np.flatnonzero(of_class == number) for number in range(3)]
    sizes = [num_base_val, num_base_test]
    return dividing.divide(_NAME, rows, numbers, names, parts, sizes, seed)


def _checked_rows(features: np.ndarray) -> np.ndarray:
  if features.dtype.kind != "f" or features.ndim != 2 or not features.size:
    raise DataError(
      f"expected features as floats [n d], got {disk.described(features)}"
    )
  with np.errstate(over="ignore"):
    rows = features.astype(np.float32)
  wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
  if wrong.size:
    raise DataError(f"row {wrong[0]}: the features are not all finite")
  return rows


def _classes(labels: np.ndarray, count: int) -> tuple[list[str], np.ndarray]:
  if labels.dtype.kind not in "iuU" or labels.shape != (count,):
    raise DataError(
      f"expected {count} integers or strings as labels,"
      f" got {disk.described(labels)}"
    )
  names, numbers = np.unique(labels, return_inverse=True)
  return [str(name) for name in names], numbers.astype(np.int32)


def _split_of_classes(
  split: np.ndarray, labels: np.ndarray, names: list[str]
) -> np.ndarray:
  """0, 1 or 2 for each class."""
  if split.dtype.kind not in "iuU" or split.shape not in (
    labels.shape,
    (len(names),),
  ):
    raise DataError(
      f"expected split for {len(labels)} rows or {len(names)} classes,"
      f" got {disk.described(split)}"
    )
  known = _SPLITS if split.dtype.kind == "U" else range(len(_SPLITS))
  values = np.full(split.shape, -1)
  for number, name in enumerate(known):
    values[split == name] = number
  wrong = np.flatnonzero(values < 0)
  if wrong.size:
    raise DataError(
      f"split[{wrong[0]}]: expected one of {', '.join(map(str, known))}, got"
      f" {excerpt(split[wrong[0]])}"
    )
  if values.shape == labels.shape:
    of_class = np.empty(len(names), int)
    of_class[labels] = values
    wrong = np.flatnonzero(of_class[labels] != values)
    if wrong.size:
      name = names[labels[wrong[0]]]
      raise DataError(f"row {wrong[0]}: class {name!r:.60} is in two splits")
    values = of_class
  for number, name in enumerate(_SPLITS):
    if number not in values:
      raise DataError(f"no class in {name}")
  return values
