"""Data for few-shot learning: many classes with few images each.

A network is trained on the base classes. Their images are in three splits: for
training, validation and testing. The classes of `val` and `test` are different
ones, which only ever appear with a few labelled images: `val` for validation,
`test`, the novel classes, for testing.
"""

import dataclasses

import numpy as np

from data_files import disk
from data_files.errors import DataError


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
  """Images, or features, with their classes.

  Attributes:
    data: images, uint8 [n height width channels], or features, float32 [n d].
    labels: positions in names, int32 [n].
    names: names of the classes, each of which has at least one row.
  """

  data: np.ndarray
  labels: np.ndarray
  names: tuple[str, ...]

  def __post_init__(self):
    kind = (self.data.dtype, self.data.ndim)
    if kind not in ((np.uint8, 4), (np.float32, 2)):
      raise DataError(
        "expected images, uint8 [n height width channels], or features,"
        f" float32 [n d], got {disk.described(self.data)}"
      )
    if self.labels.dtype != np.int32:
      raise DataError(f"expected labels int32, got {self.labels.dtype}")
    disk.check_labels(self.labels, len(self.data), len(self.names))
    if len(set(self.names)) != len(self.names):
      twice = next(n for n in self.names if self.names.count(n) > 1)
      raise DataError(f"two classes are named {twice!r:.60}")
    if not self.names:
      raise DataError("no classes")
    empty = np.flatnonzero(self.counts() == 0)
    if empty.size:
      raise DataError(f"class {self.names[empty[0]]!r:.60} has no images")
    if kind[1] == 2:
      wrong = np.flatnonzero(~np.isfinite(self.data).all(axis=1))
      if wrong.size:
        raise DataError(f"row {wrong[0]}: the features are not all finite")

  def counts(self) -> np.ndarray:
    """Images per class, int [classes]."""
    return np.bincount(self.labels, minlength=len(self.names))

  def rows_by_class(self) -> tuple[np.ndarray, ...]:
    """The row numbers of each class, ascending."""
    return rows_by_class(self.labels, len(self.names))

  @property
  def content(self) -> tuple[np.ndarray, ...]:
    """All of it as arrays, for the fingerprint."""
    return self.labels, self.data, np.array(self.names)


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
  """The five splits.

  Attributes:
    name: name of the data.
    base_train: base classes, images to train on.
    base_val: the same classes in the same order, other images.
    base_test: the same again.
    val: other classes, for validation.
    test: novel classes, for testing.
    inverted: whether dark and light of image files were exchanged.
    has_stand_ins: whether val and test hold turned images of base classes,
      since there are too few classes to set some aside.
  """

  name: str
  base_train: Split
  base_val: Split
  base_test: Split
  val: Split
  test: Split
  inverted: bool = False
  has_stand_ins: bool = False

  def __post_init__(self):
    first = self.base_train
    for name, split in self.splits().items():
      if _kind(split) != _kind(first):
        raise DataError(
          f"{self.name}: {name} has {disk.described(split.data)},"
          f" base_train {disk.described(first.data)}"
        )
      if name.startswith("base") and split.names != first.names:
        raise DataError(
          f"{self.name}: the classes of {name} are not those of base_train"
        )
    seen = {}
    for name in ("base_train", "val", "test"):
      for class_name in getattr(self, name).names:
        other = seen.setdefault(class_name, name)
        if other != name:
          raise DataError(
            f"{self.name}: class {class_name!r:.60} is in {other} and in {name}"
          )

  def splits(self) -> dict[str, Split]:
    """The five splits by name."""
    return {
      field.name: getattr(self, field.name)
      for field in dataclasses.fields(self)
      if field.type is Split
    }


def rows_by_class(labels: np.ndarray, classes: int) -> tuple[np.ndarray, ...]:
  """The row numbers of each class, ascending."""
  order = np.argsort(labels, kind="stable")
  ends = np.cumsum(np.bincount(labels, minlength=classes))
  return tuple(np.split(order, ends[:-1]))


def _kind(split: Split) -> tuple:
  return split.data.dtype, split.data.shape[1:]
