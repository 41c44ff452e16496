"""CIFAR-FS and FC100: two ways to divide the 100 classes of CIFAR-100.

CIFAR-FS divides the classes at random, 64 / 16 / 20. FC100 divides the 20
superclasses, 12 / 4 / 4, so novel classes differ in kind from base classes.
For the base classes, CIFAR's training images are base_train, except for some
held out as base_val, and its test images are base_test. For the others, all
600 images are used.
"""

import pathlib

import numpy as np

from data_files import cifar, disk, official, tfds_source
from data_files.errors import DataError
from fewshot.data import checks, cifar_classes, dividing
from fewshot.data.dataset import Dataset, Split

_CLASSES = (len(cifar_classes.COARSE), len(cifar_classes.FINE))


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
    data_dir: folder with cifar-100-binary.tar.gz, directly or in cifar100, or
      with cifar100 as prepared by TFDS. None to look where TFDS keeps its data.
    num_base_val: training images of each base class to hold out for validation.
    seed: the same seed holds out the same images.
  """
  checks.at_least(1, num_base_val=num_base_val)
  checks.at_least(0, seed=seed)
  path, reader = tfds_source.find(
    name,
    data_dir,
    ("", "cifar100", "cifar-100"),
    {"cifar-100-binary.tar.gz": _read_archive},
    ("cifar100", _read_prepared),
    f"download {official.CIFAR100.url} into a folder, without unpacking it",
  )
  train, test = reader(path)
  with disk.about(path):
    return _divided(name, train, test, num_base_val, seed)


def _read_archive(path: pathlib.Path) -> list[cifar.Batch]:
  return cifar.read_archive(path, ("train", "test"), _CLASSES)


def _read_prepared(folder: pathlib.Path) -> list[cifar.Batch]:
  return cifar.read_prepared(folder, ("coarse_label", "label"), _CLASSES)


def _divided(
  name: str,
  train: cifar.Batch,
  test: cifar.Batch,
  num_base_val: int,
  seed: int,
) -> Dataset:
  everything = cifar.Batch(
    np.concatenate([train.images, test.images]),
    np.concatenate([train.labels, test.labels], axis=1),
  )
  if name == "fc100":
    base, val, novel = cifar_classes.fc100(_superclasses(*everything.labels))
  else:
    base, val, novel = cifar_classes.cifar_fs()
  base_test = _select(test, base)
  base_train, base_val = dividing.hold_out_splits(
    _select(train, base), [num_base_val], seed
  )
  others = (_select(everything, classes) for classes in (val, novel))
  return Dataset(name, base_train, base_val, base_test, *others)


def _select(batch: cifar.Batch, classes: list[int]) -> Split:
  _, fine = batch.labels
  return dividing.select(batch.images, fine, cifar_classes.FINE, classes)


def _superclasses(coarse: np.ndarray, fine: np.ndarray) -> np.ndarray:
  """The superclass of each class [100], according to the images."""
  of_class = np.full(len(cifar_classes.FINE), -1)
  of_class[fine] = coarse
  wrong = np.flatnonzero(of_class[fine] != coarse)
  if wrong.size:
    name = cifar_classes.FINE[fine[wrong[0]]]
    raise DataError(f"the class {name!r} is in two superclasses")
  return of_class
