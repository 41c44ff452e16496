"""Omniglot: 1623 handwritten characters of 50 alphabets, 20 drawings each.

The base and validation classes are characters of the background alphabets, the
novel classes all characters of the evaluation alphabets. Ink is 255, paper 0.
"""

import pathlib
import re
from collections.abc import Sequence

import numpy as np

from data_files import disk, images, official, tfds_source
from data_files.errors import DataError
from fewshot.data import checks, dividing
from fewshot.data.dataset import Dataset, Split

_NAME = "omniglot"
_DRAWN = 105
_SMALL = 28
_DRAWING = re.compile(r"images_[a-z]+/([^/]+/character\d+)/[^/]+\.png")
_ADVICE = (
  f"download {official.OMNIGLOT_BACKGROUND.url} and"
  f" {official.OMNIGLOT_EVALUATION.url} into a folder, without unpacking them"
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
    data_dir: folder with one of these, directly or in omniglot:
      images_background.zip and images_evaluation.zip, omniglot.npz, or
      omniglot as prepared by TFDS. None to look where TFDS keeps its data.
    image_size: side of the images, [image_size image_size 1].
    num_val: background characters for validation; the others are base classes.
    num_base_val: drawings of each base class to hold out for validation.
    num_base_test: drawings of each base class to hold out for testing.
    rotations: whether each base character turned by 90, 180 and 270 degrees
      is a class of its own.
    seed: the same seed chooses the same characters and drawings.
  """
  checks.at_least(
    1, num_val=num_val, num_base_val=num_base_val, num_base_test=num_base_test
  )
  checks.at_least(8, image_size=image_size)
  checks.at_least(0, seed=seed)
  path, reader = tfds_source.find(
    _NAME,
    data_dir,
    ("",),
    {"omniglot.npz": _read_npz, "images_background.zip": _read_archives},
    (_NAME, _read_prepared),
    _ADVICE,
  )
  background, test = reader(path, image_size)
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
  with disk.about(path):
    splits = dividing.hold_out_splits(base, [num_base_val, num_base_test], seed)
  if rotations:
    splits = [_rotated(split) for split in splits]
  return Dataset(_NAME, *splits, val, test, inverted=True)


def _rotated(split: Split) -> Split:
  """Four classes from each, the turned ones last."""
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
  is_small = side == _SMALL
  shape = (_SMALL, _SMALL) if is_small else (-(-(_DRAWN**2) // 8),)
  splits = []
  for part in ("images_background", "images_evaluation"):
    key = f"{part}_28" if is_small else f"{part}_packed"
    pixels, names = disk.arrays(path, (key, f"{part}_names"))
    wrong = pixels.dtype != np.uint8 or pixels.shape[2:] != shape
    if wrong or names.dtype.kind != "U" or names.shape != pixels.shape[:1]:
      raise disk.damaged(
        path,
        f"expected {key} as uint8 [characters, drawings, *{list(shape)}] and as"
        f" many names, got {disk.described(pixels)}, {disk.described(names)}",
      )
    labels = np.repeat(np.arange(len(names), dtype=np.int32), pixels.shape[1])
    pixels = pixels.reshape(-1, *shape)
    if not is_small:
      pixels = _unpacked(pixels, side)
    with disk.about(path):
      splits.append(Split(pixels[..., None], labels, tuple(names.tolist())))
  return splits


def _unpacked(packed: np.ndarray, side: int) -> np.ndarray:
  def unpack(row: int) -> np.ndarray:
    bits = np.unpackbits(packed[row], count=_DRAWN**2)
    return images.resized(bits.reshape(_DRAWN, _DRAWN) * np.uint8(255), side)

  return images.stack(unpack, (len(packed), side, side))


def _read_archives(path: pathlib.Path, side: int) -> list[Split]:
  """Reads both archives, which must be in one folder."""
  splits = []
  for part in ("background", "evaluation"):
    path = path.with_name(f"images_{part}.zip")
    if not path.exists():
      raise DataError(f"{path}: no such file; {_ADVICE}")
    names, drawings = zip(*sorted(disk.members(path, _DRAWING)), strict=True)
    characters = [_DRAWING.fullmatch(name)[1] for name in names]
    splits.append(_split(path, names, drawings, characters, side))
  return splits


def _read_prepared(folder: pathlib.Path, side: int) -> list[Split]:
  """Reads TFDS's folder, where numbers run through both parts."""
  splits = []
  for part in ("train", "test"):
    drawings, labels = tfds_source.read(folder, part, ("image", "label"))
    names = [f"{part} {number}" for number in range(len(labels))]
    characters = [f"character{label:04}" for label in labels]
    splits.append(_split(folder, names, drawings, characters, side))
  return splits


def _split(
  path: pathlib.Path,
  names: Sequence[str],
  drawings: Sequence[bytes],
  characters: Sequence[str],
  side: int,
) -> Split:
  """Encoded drawings, black on white, and the character of each."""

  def ink(row: int) -> np.ndarray:
    where = f"{path}, {names[row]}"
    return images.square(where, drawings[row], side, "L", invert=True)[..., 0]

  data = images.stack(ink, (len(drawings), side, side))[..., None]
  classes, labels = np.unique(characters, return_inverse=True)
  split = Split(data, labels.astype(np.int32), tuple(classes.tolist()))
  counts = split.counts()
  wrong = np.flatnonzero(counts != np.bincount(counts).argmax())
  if wrong.size:  # all characters were drawn by the same people
    raise disk.damaged(
      path,
      f"{split.names[wrong[0]]} has {counts[wrong[0]]} drawings, most"
      f" characters have {np.bincount(counts).argmax()}",
    )
  return split
