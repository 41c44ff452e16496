"""Converts pickled data sets for our readers, without running any code.

  python -m data_files.unpickle cifar-10-python.tar.gz
  python -m data_files.unpickle mini-imagenet-cache-*.pkl

A pickle can run any program when it is loaded, so none is ever loaded here: it
is taken apart, and anything but plain data is refused. The result is written
next to the files:

  cifar-10-python.tar.gz                       cifar-10-binary.tar.gz
  cifar-100-python.tar.gz                      cifar-100-binary.tar.gz
  mini-imagenet-cache-*.pkl (three)            miniimagenet_84.npz
  miniImageNet_category_split_*.pickle (five)  miniimagenet_84.npz
"""

import io
import pathlib
import re
import tarfile
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from command_line import tool
from data_files import disk, images, inert_pickle
from data_files.errors import DataError
from nam_jax.training import whole_files


class _Cifar(NamedTuple):
  """The folder in an archive, the one in its binary form, and the labels."""

  folder: str
  binary: str
  labels: tuple[str, ...]


_CIFAR = {
  "cifar-10-python.tar.gz": _Cifar(
    "cifar-10-batches-py", "cifar-10-batches-bin", ("labels",)
  ),
  "cifar-100-python.tar.gz": _Cifar(
    "cifar-100-python", "cifar-100-binary", ("coarse_labels", "fine_labels")
  ),
}
_MINI = re.compile(
  r"(?:mini-imagenet-cache-|miniImageNet_category_split_)(\w+)\.(?:pkl|pickle)"
)
# The split of a file's images in miniimagenet_84.npz, for either set of files.
_MINI_SPLITS = (
  {"train": 0, "val": 1, "test": 2},
  {
    "train_phase_train": 0,
    "train_phase_val": 3,
    "train_phase_test": 4,
    "val": 1,
    "test": 2,
  },
)


def main(arguments: list[str] | None = None) -> None:
  """Runs the command line."""
  parser = tool.make_parser(__doc__, "python -m data_files.unpickle")
  parser.add_argument("files", nargs="+", metavar="FILE", type=pathlib.Path)
  parser.add_argument(
    "--force", action="store_true", help="replace an existing result"
  )
  tool.run(parser, lambda options: print(convert(**vars(options))), arguments)


def convert(files: Sequence[pathlib.Path], force: bool = False) -> pathlib.Path:
  """Converts one archive, or all pickles of mini-ImageNet; returns the result.

  The file appears only once it is complete.
  """
  first = files[0]
  if len(files) == 1 and first.name in _CIFAR:
    target = first.with_name(first.name.replace("python", "binary"))
    make = _binary_archive
  else:
    target, make = first.with_name("miniimagenet_84.npz"), _mini_imagenet
  if target.exists() and not force:
    raise DataError(f"{target} exists; --force replaces it")
  whole_files.write_bytes(target, make(files))
  return target


def _binary_archive(files: Sequence[pathlib.Path]) -> bytes:
  (path,) = files
  kind = _CIFAR[path.name]
  wanted = re.compile(
    rf"{kind.folder}/(data_batch_[1-5]|test_batch|train|test)"
  )
  result = io.BytesIO()
  with tarfile.open(fileobj=result, mode="w:gz", compresslevel=1) as archive:
    for name, data in disk.members(path, wanted):
      with disk.about(path / name):
        records = _records(inert_pickle.load(data), kind.labels)
      file = f"{kind.binary}/{wanted.fullmatch(name)[1]}.bin"
      member = tarfile.TarInfo(file)
      member.size = len(records)
      archive.addfile(member, io.BytesIO(records))
  return result.getvalue()


def _records(batch: Any, label_names: Sequence[str]) -> bytes:
  """One byte per label, then three planes of color, for each image."""
  planes = inert_pickle.bytes_array(inert_pickle.field(batch, "data"), axes=2)
  labels = []
  for name in label_names:
    found = inert_pickle.integers(inert_pickle.field(batch, name), name)
    disk.check_labels(found, len(planes), 256)
    labels.append(found.astype(np.uint8))
  return np.column_stack([*labels, planes]).tobytes()


def _mini_imagenet(files: Sequence[pathlib.Path]) -> bytes:
  """The arrays described in fewshot/data/mini_imagenet.py."""
  parts = {
    match[1]: path for path in files if (match := _MINI.fullmatch(path.name))
  }
  known = [splits for splits in _MINI_SPLITS if splits.keys() == parts.keys()]
  if not known or len(parts) != len(files):
    raise DataError(
      f"expected one of {', '.join(_CIFAR)}, or all of"
      " mini-imagenet-cache-{train,val,test}.pkl, or all five of"
      f" miniImageNet_category_split_*.pickle; got {', '.join(map(str, files))}"
    )
  encoded, labels, split, class_split = [], [], [], {}
  for part, number in known[0].items():
    with disk.about(parts[part]):
      pixels, names = _images(inert_pickle.load(disk.read(parts[part])))
    encoded += map(images.encoded, pixels)
    labels += names
    split += [number] * len(names)
    for name in names:
      class_split.setdefault(name, number if number < 3 else 0)
  numbers = {name: number for number, name in enumerate(class_split)}
  result = io.BytesIO()
  np.savez(
    result,
    blob=np.frombuffer(b"".join(encoded), np.uint8),
    offsets=np.cumsum([0, *map(len, encoded)]),
    label=np.array([numbers[name] for name in labels]),
    split=np.array(split),
    classes=np.array(list(class_split)),
    class_split=np.array(list(class_split.values())),
  )
  return result.getvalue()


def _images(content: Any) -> tuple[np.ndarray, list[str]]:
  """Images and the names of their classes."""
  lists_classes = isinstance(content, dict) and (
    {"class_dict", b"class_dict"} & content.keys()
  )
  data = inert_pickle.field(content, "image_data" if lists_classes else "data")
  data = inert_pickle.bytes_array(data, axes=4)
  if data.shape[3] != 3 or data.shape[1] != data.shape[2]:
    raise DataError(
      f"expected images uint8 [n side side 3], got {list(data.shape)}"
    )
  if lists_classes:
    classes = inert_pickle.field(content, "class_dict")
    return data, _names_of_rows(classes, len(data))
  labels = inert_pickle.integers(
    inert_pickle.field(content, "labels"), "labels"
  )
  disk.check_labels(labels, len(data), 1 << 31)
  return data, [str(label) for label in labels]


def _names_of_rows(classes: Any, count: int) -> list[str]:
  """The class of each image, from the list of each class's images."""
  if not isinstance(classes, dict) or not classes:
    raise DataError("expected a dict as class_dict")
  names = [None] * count
  for name, rows in classes.items():
    text = name if isinstance(name, str) else name.decode("ascii", "replace")
    rows = inert_pickle.integers(rows, f"the images of class {text!r:.60}")
    disk.check_labels(rows, len(rows), count)
    for row in rows:
      if names[row] is not None:
        raise DataError(f"image {row} is in two classes")
      names[row] = text
  if None in names:
    raise DataError(f"image {names.index(None)} is in no class")
  return names


if __name__ == "__main__":
  main()
