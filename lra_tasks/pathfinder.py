"""Pathfinder: whether two marked ends belong to one contour, from pixels.

The benchmark's folders, below pathfinder32, pathfinder64, ...:

  curv_baseline, curv_contour_length_9, curv_contour_length_14
    imgs/<k>/sample_<i>.png
    metadata/<k>.npy    plain text in spite of its name, a line per image:
                        folder, file, number, label and what was drawn

An .npz file with x, uint8 [n height width], and y, labels [n], does as well.
Images are taken in the order of the metadata, then shuffled in a way that
never changes: 80% to learn from, 10% for validation, 10% for the test.
"""

import logging
import os
import pathlib
from typing import NamedTuple

import numpy as np

from data_files import cache, disk, errors, images
from lra_tasks import rows, task

FOLDERS = {
  "easy": "curv_baseline",
  "inter": "curv_contour_length_9",
  "hard": "curv_contour_length_14",
}
RESOLUTIONS = (32, 64, 128, 256)
NAMES = tuple(f"pathfinder{r}_{d}" for r in RESOLUTIONS for d in FOLDERS)


class _Entry(NamedTuple):
  path: pathlib.Path
  label: int


_PLACES = ("", "lra_release", "lra_release/lra_release")
_ADVICE = (
  "Unpack https://storage.googleapis.com/long-range-arena/lra_release.gz there,"
  " or draw images with python -m lra_tasks.pathfinder_generator."
)
_SHUFFLE_SEED = 0


def make_task(name: str, data_dir: pathlib.Path | None) -> task.Task:
  """One of NAMES, from a folder of the benchmark or an .npz file.

  Args:
    name: resolution and difficulty, such as "pathfinder32_hard".
    data_dir: has pathfinder<resolution>, perhaps below lra_release; or an .npz
      file of the task's name; or, in pathfinder<resolution>, any single .npz.
  """
  if name not in NAMES:
    raise ValueError(f"unknown task {name!r}; known: {', '.join(NAMES)}")
  resolution = int(name.removeprefix("pathfinder").split("_")[0])
  source = _find(name, data_dir)
  read = _read_folder if source.is_dir() else _read_npz
  images, labels = read(source, resolution)
  ends = len(labels) * 8 // 10, len(labels) * 9 // 10
  train, validation, test = map(
    rows.ImageRows, np.split(images, ends), np.split(labels, ends)
  )
  return task.Task(
    name=name,
    vocab_size=256,
    num_classes=2,
    max_length=resolution**2,
    is_pair=False,
    train=train,
    validation=validation,
    test=test,
  )


def _find(name: str, data_dir: pathlib.Path | None) -> pathlib.Path:
  """The folder with imgs and metadata, or the .npz file."""
  top, difficulty = name.split("_")
  any_npz = f"{top}/*.npz"
  patterns = [f"{top}/{FOLDERS[difficulty]}", f"{name}.npz"]
  patterns += [f"{top}/{name}.npz", any_npz]
  path, pattern = disk.find(name, data_dir, _PLACES, patterns, _ADVICE)
  if pattern == any_npz:
    several = len(list(path.parent.glob("*.npz"))) > 1
    if several or path.stem in NAMES:
      raise errors.DataError(
        f"{path.parent}: has .npz files, but neither {name}.npz nor a single "
        "one that could be any task's"
      )
  return path


def _read_npz(
  path: pathlib.Path, resolution: int
) -> tuple[np.ndarray, np.ndarray]:
  """Images and labels, both shuffled."""
  images, labels = disk.arrays(path, ["x", "y"])
  if images.dtype != np.uint8 or images.shape[1:] != (resolution, resolution):
    raise errors.DataError(
      f"{path}: expected x as uint8 [n {resolution} {resolution}], got "
      f"{images.dtype} {list(images.shape)}"
    )
  if labels.shape != images.shape[:1] or not np.isin(labels, (0, 1)).all():
    raise errors.DataError(
      f"{path}: expected y as {len(images)} labels, each 0 or 1"
    )
  order = _shuffled(len(labels))
  return images[order], labels[order]


def _read_folder(
  folder: pathlib.Path, resolution: int
) -> tuple[np.ndarray, np.ndarray]:
  """Images, mapped from the cache, and labels, both shuffled."""
  metadata = sorted(
    (folder / "metadata").glob("*.npy"), key=lambda p: (len(p.name), p.name)
  )
  entries = [entry for path in metadata for entry in _entries(folder, path)]
  if not entries:
    raise errors.DataError(f"{folder}: no metadata/*.npy. {_ADVICE}")

  def make(target: pathlib.Path) -> None:
    chosen = [entries[i] for i in _shuffled(len(entries))]
    _decode(target, chosen, resolution)

  state = [str(folder.resolve()), len(entries)]
  for path in [*metadata, *sorted((folder / "imgs").glob("*"))]:
    state += [path.name, path.stat().st_mtime_ns]
  name = f"{folder.parent.name}-{folder.name}-{cache.digest(*state)}"
  kept = cache.keep(name, make)
  images = np.load(kept / "images.npy", mmap_mode="r", allow_pickle=False)
  return images, np.load(kept / "labels.npy", allow_pickle=False)


def _shuffled(count: int) -> np.ndarray:
  return np.random.default_rng(_SHUFFLE_SEED).permutation(count)


def _entries(folder: pathlib.Path, metadata: pathlib.Path) -> list[_Entry]:
  entries = []
  for where, line in disk.lines(metadata):
    fields = os.fsdecode(line).split()
    if len(fields) < 4 or fields[3] not in ("0", "1"):
      raise errors.DataError(
        f"{where}: expected folder, file, number and a label 0 or 1, got "
        f"{line!r:.60}"
      )
    entries.append(_Entry(folder / fields[0] / fields[1], int(fields[3])))
  return entries


def _decode(
  target: pathlib.Path, entries: list[_Entry], resolution: int
) -> None:
  """Writes images.npy and labels.npy of all images that are not empty."""
  try:
    full = [entry for entry in entries if entry.path.stat().st_size]
  except OSError as error:
    raise errors.DataError(f"{error.filename}: {error.strerror}") from error
  if len(full) < len(entries):
    empty = set(entries) - set(full)
    logging.getLogger(__name__).warning(
      "left out %d empty image(s), such as %s", len(empty), min(empty).path
    )
  images = np.lib.format.open_memmap(
    target / "images.npy", "w+", np.uint8, (len(full), resolution, resolution)
  )

  images.stack(
    lambda index: _read_image(full[index].path, resolution),
    images.shape,
    images,
  )
  images.flush()
  np.save(target / "labels.npy", np.array([e.label for e in full], np.int32))


def _read_image(path: pathlib.Path, resolution: int) -> np.ndarray:
  pixels = images.png(str(path), disk.read(path))
  if pixels.shape != (resolution, resolution):
    raise errors.DataError(
      f"{path}: expected {resolution} x {resolution} gray pixels, got "
      f"{list(pixels.shape)}"
    )
  return pixels
