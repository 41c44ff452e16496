"""Pathfinder: whether two marked ends belong to one contour, from pixels.

The benchmark's folders, below pathfinder32, pathfinder64, ...:

  curv_baseline, curv_contour_length_9, curv_contour_length_14
    imgs/<k>/sample_<i>.png
    metadata/<k>.npy    plain text despite the name, a line per image:
                        folder, file, number, label and how it was drawn

An .npz file with x, uint8 [n height width], and y, labels [n], works as well.
Images are taken in the order of the metadata, then shuffled the same way every
time: 80% for training, 10% for validation, 10% for the test.
"""

import logging
import os
import pathlib
import stat
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from data_files import cache, disk, files_read, images
from data_files.errors import DataError
from lra_tasks import rows, task

FOLDERS = {
  "easy": "curv_baseline",
  "inter": "curv_contour_length_9",
  "hard": "curv_contour_length_14",
}
RESOLUTIONS = (32, 64, 128, 256)

_PLACES = ("", "lra_release", "lra_release/lra_release")
_ADVICE = (
  "Unpack https://storage.googleapis.com/long-range-arena/lra_release.gz there,"
  " or draw images with python -m lra_tasks.pathfinder_generator."
)
_SHUFFLE_SEED = 0
_LONGEST_NAME = 200


class _Entry(NamedTuple):
  path: pathlib.Path
  label: int


def make_task(
  data_dir: pathlib.Path | None,
  *,
  resolution: int = 32,
  level: str = "hard",
  add_levels: Sequence[str] = (),
) -> task.Task:
  """The task from a folder of the benchmark or an .npz file.

  Args:
    data_dir: has the folder pathfinder<resolution>, maybe in lra_release; or
      pathfinder<resolution>_<level>.npz, or any single .npz in that folder.
    resolution: height and width, 32, 64, 128 or 256.
    level: "easy", "inter" or "hard".
    add_levels: other levels, all of whose images are added for training.
  """
  levels = (level, *add_levels)
  if resolution not in RESOLUTIONS or not FOLDERS.keys() >= {*levels}:
    raise ValueError(
      f"expected a resolution of {', '.join(map(str, RESOLUTIONS))} and levels"
      f" of {', '.join(FOLDERS)}, got {resolution!r} and"
      f" {', '.join(map(repr, levels))}"
    )
  if len({*levels}) < len(levels):
    raise ValueError(f"add_levels={add_levels} has a level twice, or {level!r}")
  pixels, labels = _read(data_dir, resolution, level)
  ends = len(labels) * 8 // 10, len(labels) * 9 // 10
  parts = [*zip(np.split(pixels, ends), np.split(labels, ends), strict=True)]
  more = [_read(data_dir, resolution, other) for other in add_levels]
  if more:
    parts[0] = tuple(map(np.concatenate, zip(parts[0], *more, strict=True)))
  train, validation, test = (rows.ImageRows(*part) for part in parts)
  return task.Task(
    name="pathfinder",
    vocab_size=256,
    num_classes=2,
    max_length=resolution**2,
    is_pair=False,
    train=train,
    validation=validation,
    test=test,
  )


def _read(
  data_dir: pathlib.Path | None, resolution: int, level: str
) -> tuple[np.ndarray, np.ndarray]:
  """Images and labels of a level, both shuffled."""
  top = f"pathfinder{resolution}"
  readers = {
    f"{top}/{FOLDERS[level]}": _read_folder,
    f"{top}_{level}.npz": _read_npz,
    f"{top}/{top}_{level}.npz": _read_npz,
    f"{top}/*.npz": _read_only_npz,
  }
  path, reader = disk.find("pathfinder", data_dir, _PLACES, readers, _ADVICE)
  return reader(path, resolution)


def _read_only_npz(
  path: pathlib.Path, resolution: int
) -> tuple[np.ndarray, np.ndarray]:
  """The folder's only .npz file, unless it is named after another level."""
  levels = [f"{path.parent.name}_{level}" for level in FOLDERS]
  if len(list(path.parent.glob("*.npz"))) > 1 or path.stem in levels:
    raise DataError(
      f"{path.parent}: expected a single .npz file or one named after the"
      f" level, such as {levels[-1]}.npz"
    )
  return _read_npz(path, resolution)


def _read_npz(
  path: pathlib.Path, resolution: int
) -> tuple[np.ndarray, np.ndarray]:
  """Images and labels, both shuffled."""
  pixels, labels = disk.arrays(path, ["x", "y"])
  if pixels.dtype != np.uint8 or pixels.shape[1:] != (resolution, resolution):
    raise DataError(
      f"{path}: expected x as uint8 [n {resolution} {resolution}],"
      f" got {disk.described(pixels)}"
    )
  with disk.about(path):
    disk.check_labels(labels, len(pixels), 2)
  order = _shuffled(len(labels))
  return pixels[order], labels[order]


def _read_folder(
  folder: pathlib.Path, resolution: int
) -> tuple[np.ndarray, np.ndarray]:
  """Images, mapped from the cache, and labels, both shuffled."""
  metadata = sorted(
    (folder / "metadata").glob("*.npy"), key=lambda p: (len(p.name), p.name)
  )
  entries = [entry for path in metadata for entry in _entries(folder, path)]
  if not entries:
    raise DataError(f"{folder}: no metadata/*.npy. {_ADVICE}")

  def make(target: pathlib.Path) -> None:
    chosen = [entries[i] for i in _shuffled(len(entries))]
    _decode(target, chosen, resolution)

  paths = [*metadata, *(entry.path for entry in entries)]
  state = [files_read.stamp(path) for path in paths]
  name = f"{folder.parent.name}-{folder.name}-{cache.digest(*state)}"
  kept = cache.keep(name, make)
  pixels = np.load(kept / "images.npy", mmap_mode="r", allow_pickle=False)
  return pixels, np.load(kept / "labels.npy", allow_pickle=False)


def _shuffled(count: int) -> np.ndarray:
  return np.random.default_rng(_SHUFFLE_SEED).permutation(count)


def _entries(folder: pathlib.Path, metadata: pathlib.Path) -> list[_Entry]:
  entries = []
  for where, line in disk.lines(metadata):
    fields = os.fsdecode(line).split()
    path = "/".join(fields[:2])
    is_wrong = len(fields) < 4 or fields[3] not in ("0", "1")
    if is_wrong or not path.isprintable() or len(path) > _LONGEST_NAME:
      raise DataError(
        f"{where}: expected folder, file, number and a label 0 or 1, got "
        f"{line!r:.60}"
      )
    entries.append(_Entry(folder / path, int(fields[3])))
  return entries


def _is_empty(path: pathlib.Path) -> bool:
  state = path.stat()
  return stat.S_ISREG(state.st_mode) and not state.st_size


def _decode(
  target: pathlib.Path, entries: list[_Entry], resolution: int
) -> None:
  """Writes images.npy and labels.npy of all images that are not empty."""
  try:
    full = [entry for entry in entries if not _is_empty(entry.path)]
  except OSError as error:
    raise DataError(f"{error.filename}: {error.strerror}") from error
  if len(full) < len(entries):
    empty = set(entries) - set(full)
    logging.getLogger(__name__).warning(
      "left out %d empty image(s), such as %s", len(empty), min(empty).path
    )
  if not full:
    raise DataError(f"{entries[0].path}: all images are empty, as this one is")
  shape = (resolution, resolution)

  def load(index: int) -> np.ndarray:
    path = full[index].path
    return images.png(str(path), disk.read(path), shape)

  images.stack(load, (len(full), *shape), target / "images.npy")
  np.save(target / "labels.npy", np.array([e.label for e in full], np.int32))
