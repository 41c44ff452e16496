"""Omniglot: 1623 handwritten characters of 50 alphabets, 20 drawings each.

The base classes and those to select by are characters of the background
alphabets, the novel classes all characters of the evaluation alphabets. Ink is
255, paper 0.
"""

import pathlib
import re

import numpy as np

from data_files import disk, images, official, prepared
from data_files.errors import DataError
from fewshot.data import checks, dividing
from fewshot.data.dataset import Dataset, Split

_NAME = "omniglot"
_FOLDERS = ("", _NAME)
_DRAWN = 105
_SMALL = 28
_CHARACTERS = 1623
_DRAWING = re.compile(r"images_[a-z]+/([^/]+/character\d+)/[^/]+\.png")
_ADVICE = (
  f"Fetch {official.OMNIGLOT_BACKGROUND.url} and"
  f" {official.OMNIGLOT_EVALUATION.url} into that folder; they need not be"
  " unpacked"
)


def load(
  data_dir: pathlib.Path | None,
  *,
  image_size: int = _SMALL,
  num_val: int = 100,
  num_base_val: int = 3,
  num_base_test: int = 3,
  rotations: bool = False,
  seed: int = 0,
) -> Dataset:
  """Reads Omniglot.

  Args:
    data_dir: folder with one of these, by itself or in omniglot:
      images_background.zip and images_evaluation.zip, the folders of either
      (alphabet/character/drawing.png), omniglot.npz, or what
      tensorflow_datasets prepared.
    image_size: side of the images, [image_size image_size 1].
    num_val: background characters to select by; the others are base classes.
    num_base_val: drawings of each base class to set aside to select by.
    num_base_test: drawings of each base class to set aside to report.
    rotations: whether each base character turned by 90, 180 and 270 degrees
      is a class of its own.
    seed: the same seed chooses the same characters and drawings.
  """
  checks.at_least(
    1, num_val=num_val, num_base_val=num_base_val, num_base_test=num_base_test
  )
  checks.at_least(8, image_size=image_size)
  checks.at_least(0, seed=seed)
  path, pattern = disk.find(_NAME, data_dir, _FOLDERS, _READERS, _ADVICE)
  background, test = _READERS[pattern](path, image_size)
  if num_val >= len(background.names):
    raise DataError(
      f"num_val {num_val} leaves no base class: there are"
      f" {len(background.names)} background characters"
    )
  order = np.random.default_rng(seed).permutation(len(background.names))
  val, base = (
    dividing.select(background.data, background.labels, background.names, part)
    for part in (np.sort(order[:num_val]), np.sort(order[num_val:]))
  )
  try:
    splits = dividing.hold_out_splits(base, [num_base_val, num_base_test], seed)
  except DataError as error:
    raise disk.damaged(path, error) from error
  if rotations:
    splits = [_rotated(split) for split in splits]
  return Dataset(_NAME, *splits, val, test)


def _rotated(split: Split) -> Split:
  """Four classes of each, the turned ones last."""
  turns = range(4)
  return Split(
    np.concatenate([np.rot90(split.data, turn, (1, 2)) for turn in turns]),
    np.concatenate([split.labels + turn * len(split.names) for turn in turns]),
    tuple(
      f"{name}@{90 * turn}" if turn else name
      for turn in turns
      for name in split.names
    ),
  )


def _read_npz(path: pathlib.Path, side: int) -> list[Split]:
  """Background and evaluation; sides other than 28 from the packed images."""
  splits = []
  for part in ("images_background", "images_evaluation"):
    key = f"{part}_28" if side == _SMALL else f"{part}_packed"
    images, names = disk.arrays(path, (key, f"{part}_names"))
    shape = (_SMALL, _SMALL) if side == _SMALL else (-(-(_DRAWN**2) // 8),)
    wrong = images.dtype != np.uint8 or images.shape[2:] != shape
    if wrong or names.dtype.kind != "U" or names.shape != images.shape[:1]:
      raise disk.damaged(
        path,
        f"expected {key} as uint8 [characters drawings {_text(shape)}] and as"
        f" many names, got {images.dtype} {list(images.shape)},"
        f" {names.dtype} {list(names.shape)}",
      )
    labels = np.repeat(np.arange(len(names), dtype=np.int32), images.shape[1])
    images = images.reshape(-1, *shape)
    if side != _SMALL:
      images = _unpacked(images, side)
    try:
      splits.append(Split(images[..., None], labels, tuple(names.tolist())))
    except DataError as error:
      raise disk.damaged(path, f"{part}: {error}") from error
  return splits


def _unpacked(packed: np.ndarray, side: int) -> np.ndarray:
  def unpack(row: int) -> np.ndarray:
    bits = np.unpackbits(packed[row], count=_DRAWN**2)
    return images.resized(bits.reshape(_DRAWN, _DRAWN) * np.uint8(255), side)

  return images.stack(unpack, (len(packed), side, side))


def _read_drawings(path: pathlib.Path, side: int) -> list[Split]:
  """From the two archives, or their folders, beside one another."""
  return [
    _read_alphabets(path.with_name(path.name.replace("background", part)), side)
    for part in ("background", "evaluation")
  ]


def _read_alphabets(path: pathlib.Path, side: int) -> Split:
  if not path.exists():
    raise DataError(f"{path}: no such file. {_ADVICE}")
  drawings = sorted(disk.members(path, _DRAWING))
  found = [_DRAWING.fullmatch(name)[1] for name, _ in drawings]
  names, labels = np.unique(found, return_inverse=True)

  def ink(row: int) -> np.ndarray:
    name, data = drawings[row]
    return _ink(f"{path}, {name}", data, side)

  images = images.stack(ink, (len(drawings), side, side))[..., None]
  split = Split(images, labels.astype(np.int32), tuple(names.tolist()))
  return _checked(path, split)


def _ink(where: str, png: bytes, side: int) -> np.ndarray:
  """A drawing, black on white, as uint8 [side side] with ink 255."""
  drawn = images.square(where, png, _DRAWN, "L")
  return images.resized(255 - drawn[..., 0], side)


def _read_prepared(shard: pathlib.Path, side: int) -> list[Split]:
  """Classes are numbered as there, through both parts."""
  splits = []
  for part in ("train", "test"):
    images, labels = [], []
    for where, example in prepared.examples(shard.parent, _NAME, part):
      png = prepared.content(where, example, "image")
      images.append(_ink(where, png, side))
      labels.append(prepared.label(where, example, _CHARACTERS))
    numbers, labels = np.unique(labels, return_inverse=True)
    names = tuple(f"character{number:04}" for number in numbers)
    data = np.stack(images)[..., None]
    split = Split(data, labels.astype(np.int32), names)
    splits.append(_checked(shard, split))
  return splits


def _checked(path: pathlib.Path, split: Split) -> Split:
  """The split, if all characters were drawn by the same people."""
  counts = split.counts()
  wrong = np.flatnonzero(counts != np.bincount(counts).argmax())
  if wrong.size:
    raise disk.damaged(
      path,
      f"{split.names[wrong[0]]} has {counts[wrong[0]]} drawings, most"
      f" characters have {np.bincount(counts).argmax()}",
    )
  return split


def _text(shape: tuple[int, ...]) -> str:
  return " ".join(map(str, shape))


_READERS = {
  "omniglot.npz": _read_npz,
  "images_background": _read_drawings,
  "images_background.zip": _read_drawings,
  "omniglot-train.*-of-*": _read_prepared,
  "*/omniglot-train.*-of-*": _read_prepared,
}
