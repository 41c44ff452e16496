"""Draws Pathfinder images: do the two marked ends belong to one contour?

  python -m lra_tasks.pathfinder_generator --output_dir DIR --resolution 32 \\
    --level hard --count 200000

Each image has two long contours of dashes, short ones as distractors, and two
discs. One disc is where a long contour starts, the other where the same one
ends (label 1) or where the other one ends (label 0). Sizes and folders are
those of the benchmark, so DIR works as the task's data_dir. Image i depends
only on i and the seed.
"""

import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import pathlib
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from command_line import tool
from lra_tasks import pathfinder, pathfinder_contours

CONTOUR_LENGTHS = {"easy": 6, "inter": 9, "hard": 14}

_SAMPLES_PER_PIXEL = 4
_IMAGES_PER_FOLDER, _IMAGES_PER_JOB = 1000, 100


class Sample(NamedTuple):
  """An image, uint8 [height width], its label, and its margin."""

  image: np.ndarray
  label: int
  margin: int


def draw(resolution: int, level: str, seed: int, index: int) -> Sample:
  """Image number `index`; even ones have label 0, odd ones label 1."""
  rng = np.random.default_rng([seed, index])
  style = pathfinder_contours.STYLES[resolution]
  margin = style.margins[rng.integers(len(style.margins))]
  plane = pathfinder_contours.plane(style, margin)
  long, short = plane.contours(rng, CONTOUR_LENGTHS[level])
  image = np.zeros((resolution, resolution))
  for contours, contrast in zip((long, short), style.contrasts, strict=True):
    if contours:
      _draw_paddles(image, style, contours, contrast)
  label, first = index % 2, rng.integers(2)
  begin = long[first]
  end = (begin if label else long[1 - first])[::-1]
  tips = [_tip(nodes, margin) for nodes in (begin, end)]
  _draw_discs(image, np.stack(tips), style.marker_radius)
  image *= 255 / image.max()
  return Sample(np.rint(image).astype(np.uint8), label, margin)


def write(
  output_dir: pathlib.Path,
  *,
  resolution: int,
  level: str,
  count: int,
  seed: int = 0,
  workers: int = 1,
) -> pathlib.Path:
  """Draws images into their folder below output_dir, which it returns.

  Each subfolder gets a thousand images, then its metadata, so the output of an
  interrupted run can be read.
  """
  folder = output_dir / f"pathfinder{resolution}"
  folder /= pathfinder.FOLDERS[level]
  metadata = folder / "metadata"
  if metadata.exists():
    raise FileExistsError(f"{folder} has images already")
  metadata.mkdir(parents=True)
  starts = range(0, count, _IMAGES_PER_JOB)
  ends = [min(start + _IMAGES_PER_JOB, count) for start in starts]
  job = functools.partial(_write_images, folder, resolution, level, seed)
  with _mapper(workers) as mapped:
    for start, lines in zip(starts, mapped(job, starts, ends), strict=True):
      path = metadata / f"{start // _IMAGES_PER_FOLDER}.npy"
      with path.open("a") as file:
        file.writelines(lines)
  return folder


@contextlib.contextmanager
def _mapper(workers: int) -> Iterator[Callable]:
  if workers == 1:
    yield map
    return
  # Forked processes would inherit locks that other threads may hold.
  context = multiprocessing.get_context("spawn")
  with concurrent.futures.ProcessPoolExecutor(
    workers, context, _end_with_parent
  ) as pool:
    yield pool.map


def _end_with_parent():
  """Has a worker ignore Ctrl-C, and end when its parent does, even at once."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)
  parent = multiprocessing.parent_process()
  assert parent

  def wait():
    parent.join()
    os._exit(1)

  threading.Thread(target=wait, daemon=True).start()


def _write_images(
  folder: pathlib.Path,
  resolution: int,
  level: str,
  seed: int,
  start: int,
  end: int,
) -> list[str]:
  """Writes the images start..end-1; returns their lines of metadata."""
  from PIL import Image

  style = pathfinder_contours.STYLES[resolution]
  length = CONTOUR_LENGTHS[level]
  subfolder = f"imgs/{start // _IMAGES_PER_FOLDER}"
  (folder / subfolder).mkdir(parents=True, exist_ok=True)
  lines = []
  for index in range(start, end):
    sample = draw(resolution, level, seed, index)
    number = index % _IMAGES_PER_FOLDER
    name = f"sample_{number}.png"
    Image.fromarray(sample.image).save(folder / subfolder / name)
    lines.append(
      f"{subfolder} {name} {number} {sample.label} {style.continuity} {length} "
      f"{length // 3} {style.paddle_length} {style.thickness} {sample.margin} "
      "1\n"
    )
  return lines


def _tip(nodes: np.ndarray, margin: int) -> np.ndarray:
  """Where the first dash starts, a margin after the first node."""
  step = nodes[1] - nodes[0]
  return nodes[0] + margin * step / np.linalg.norm(step)


def _draw_paddles(
  image: np.ndarray,
  style: pathfinder_contours.Style,
  contours: list[np.ndarray],
  contrast: float,
) -> None:
  """Dashes in the middle of all steps, sharp because they start at a pixel."""
  steps = np.concatenate([np.diff(nodes, axis=0) for nodes in contours])
  middles = np.concatenate([(n[1:] + n[:-1]) / 2 for n in contours])
  along = steps / np.linalg.norm(steps, axis=1, keepdims=True)
  half = style.paddle_length / 2
  centers = np.rint(middles - half * along) + half * along
  y, x = along.T[..., None, None]

  def is_inside(dy, dx):
    # The pixels at both ends belong to the dash.
    is_along = abs(dy * y + dx * x) <= half + 0.5
    return is_along & (abs(dy * x - dx * y) <= style.thickness / 2)

  _stamp(image, centers, half + 1 + style.thickness, is_inside, contrast)


def _draw_discs(image: np.ndarray, centers: np.ndarray, radius: float) -> None:
  def is_inside(dy, dx):
    return dy**2 + dx**2 <= radius**2

  _stamp(image, centers, radius, is_inside, 1.0)


def _stamp(
  image: np.ndarray,
  centers: np.ndarray,
  reach: float,
  is_inside: Callable[[np.ndarray, np.ndarray], np.ndarray],
  contrast: float,
) -> None:
  """Draws a shape at each of the centers [n 2], the brighter pixel on top.

  `is_inside` takes distances from the centers, [n height 1] and [n 1 width].
  A pixel is as bright as the share of its sample points inside.
  """
  size, fine = 2 * int(np.ceil(reach)) + 1, _SAMPLES_PER_PIXEL
  corners = np.rint(centers).astype(np.int64) - size // 2
  samples = (np.arange(size * fine) + 0.5) / fine - 0.5
  y, x = (corners - centers).T[..., None] + samples  # [n size * fine]
  inside = is_inside(y[:, :, None], x[:, None])
  share = inside.reshape(-1, size, fine, size, fine).mean((2, 4))
  rows, columns = corners.T[..., None] + np.arange(size)  # [n size]
  rows, columns = np.broadcast_arrays(rows[:, :, None], columns[:, None])
  seen = (np.minimum(rows, columns) >= 0) & (
    np.maximum(rows, columns) < len(image)
  )
  np.maximum.at(image, (rows[seen], columns[seen]), contrast * share[seen])


def main(arguments: Sequence[str] | None = None) -> None:
  """Runs the command line."""
  parser = tool.make_parser(__doc__, "python -m lra_tasks.pathfinder_generator")
  add = parser.add_argument
  add("--output_dir", type=pathlib.Path, required=True)
  add("--resolution", type=int, choices=pathfinder.RESOLUTIONS, default=32)
  # --difficulty is an older name.
  add("--level", "--difficulty", choices=CONTOUR_LENGTHS, default="hard")
  add("--count", type=int, default=200_000, help="images")
  add("--seed", type=int, default=0, help=" ")
  add("--workers", type=int, default=1, help="processes")
  tool.run(parser, _write, arguments)


def _write(options) -> None:
  if min(options.count, options.workers) < 1 or options.seed < 0:
    raise ValueError("count and workers must be >= 1, and seed >= 0")
  print(f"{options.count} images in {write(**vars(options))}")


if __name__ == "__main__":
  main()
