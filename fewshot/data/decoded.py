"""Images decoded once and kept in the cache."""

import pathlib
from collections.abc import Callable, Sequence

import numpy as np

from data_files import cache, disk, files_read, images


def keep(
  name: str,
  state: tuple,
  shape: tuple[int, ...],
  loader: Callable[[], Callable[[int], np.ndarray]],
) -> np.ndarray:
  """Images, uint8, mapped from a file in the cache.

  Args:
    name: name of the data.
    state: what the images depend on.
    shape: the result's shape, [n height width channels].
    loader: makes the function that decodes image number i; called only if the
      images are not in the cache.
  """

  def make(folder: pathlib.Path) -> None:
    images.stack(loader(), shape, folder / "images.npy")

  folder = cache.keep(f"{name}-{cache.digest(shape, state)}", make)
  return np.load(folder / "images.npy", mmap_mode="r", allow_pickle=False)


def keep_files(
  name: str, paths: Sequence[pathlib.Path], side: int
) -> np.ndarray:
  """The images of all files, uint8 [n side side 3]."""
  return keep(
    name,
    tuple(map(files_read.stamp, paths)),
    (len(paths), side, side, 3),
    lambda: lambda i: images.square(str(paths[i]), disk.read(paths[i]), side),
  )
