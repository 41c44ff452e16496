"""Converts pickles of mini-ImageNet: python -m fewshot.convert FILE.pickle ...

A pickle can run any program when it is loaded, so none is ever loaded here: it
is taken apart, and anything but plain data is refused. These are converted:

  the protocol's five files   a dict: data, uint8 [n side side 3], and labels
  mini-imagenet-cache-*.pkl   a dict: image_data, uint8 [n side side 3], and
                              class_dict, which lists each class's images

Each becomes an .npz file beside it, with arrays data and labels.
"""

import argparse
import os
import pathlib
import tempfile
from typing import Any

import numpy as np

from data_files import disk, inert_pickle
from data_files.errors import DataError


def main(arguments: list[str] | None = None) -> None:
  """Converts what the arguments name; the first error ends with one line."""
  parser = argparse.ArgumentParser(
    prog="python -m fewshot.convert",
    description="Converts pickles of mini-ImageNet to .npz, running nothing.",
  )
  parser.add_argument("files", nargs="+", metavar="FILE", type=pathlib.Path)
  parser.add_argument(
    "--force", action="store_true", help="replace .npz files that are there"
  )
  options = parser.parse_args(arguments)
  for path in options.files:
    try:
      target = convert(path, options.force)
    except DataError as error:
      parser.exit(2, f"error: {error}\n")
    print(f"{path} -> {target}")


def convert(path: pathlib.Path, force: bool = False) -> pathlib.Path:
  """Converts one pickle; the .npz file appears when it is complete."""
  target = path.with_suffix(".npz")
  if target == path:
    raise DataError(f"{path}: not a pickle, by its name")
  if target.exists() and not force:
    raise DataError(f"{target}: is there already; --force replaces it")
  try:
    data, labels = _arrays(inert_pickle.load(disk.read(path)))
  except DataError as error:
    raise DataError(f"{path}: {error}") from error
  try:
    with tempfile.TemporaryDirectory(
      prefix=f".{target.name}.", dir=target.parent
    ) as folder:
      partial = pathlib.Path(folder, target.name)
      np.savez(partial, data=data, labels=labels)
      os.replace(partial, target)
  except OSError as error:
    raise DataError(f"cannot write {target}: {error}") from error
  return target


def _arrays(content: Any) -> tuple[np.ndarray, np.ndarray]:
  """Images and their labels."""
  if isinstance(content, dict) and {"class_dict", b"class_dict"} & set(content):
    data = _images(inert_pickle.field(content, "image_data"))
    classes = inert_pickle.field(content, "class_dict")
    return data, _labels_of_classes(classes, len(data))
  data = _images(inert_pickle.field(content, "data"))
  labels = inert_pickle.field(content, "labels")
  labels = inert_pickle.integers(labels, "labels")
  if len(labels) != len(data):
    raise DataError(f"{len(data)} images, {len(labels)} labels")
  return data, labels


def _images(value: Any) -> np.ndarray:
  data = inert_pickle.bytes_array(value, axes=4)
  if data.shape[3] != 3 or data.shape[1] != data.shape[2]:
    raise DataError(
      f"expected images uint8 [n side side 3], got {list(data.shape)}"
    )
  return data


def _labels_of_classes(classes: Any, count: int) -> np.ndarray:
  """The name of each image's class, from the list of each class's images."""
  if not isinstance(classes, dict) or not classes:
    raise DataError("expected a dict as class_dict")
  names = [_text(name) for name in classes]
  numbers = np.full(count, -1)
  for number, (name, rows) in enumerate(
    zip(names, classes.values(), strict=True)
  ):
    rows = inert_pickle.integers(rows, f"the images of class {name!r}")
    if rows.size and not 0 <= rows.min() <= rows.max() < count:
      raise DataError(f"class {name!r}: expected images 0..{count - 1}")
    if (numbers[rows] >= 0).any() or len(set(rows.tolist())) < len(rows):
      raise DataError(f"class {name!r}: an image is in two classes")
    numbers[rows] = number
  left = np.flatnonzero(numbers < 0)
  if left.size:
    raise DataError(f"image {left[0]} is in no class")
  return np.array(names)[numbers]


def _text(name: str | bytes) -> str:
  try:
    return name if isinstance(name, str) else name.decode("ascii")
  except UnicodeDecodeError as error:
    raise DataError(f"a class has the name {name!r:.40}") from error


if __name__ == "__main__":
  main()
