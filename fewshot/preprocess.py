"""From image files, folders and PIL images to arrays, as training reads them.

A picture is cut to its middle square and resized. A classifier keeps these
settings, so that it sees new pictures as it saw those it was trained on.
"""

import dataclasses
import os
import pathlib
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from data_files import disk, images
from data_files.errors import DataError

# What files of images are called.
SUFFIXES = (
  *(".bmp", ".gif", ".jpg", ".jpeg", ".png"),
  *(".ppm", ".tif", ".tiff", ".webp"),
)
_CHANNELS = {"RGB": 3, "L": 1}


@dataclasses.dataclass(frozen=True)
class Preprocess:
  """How a picture becomes an array.

  Attributes:
    side: height and width of the result.
    mode: "RGB", or "L" for shades of grey.
    invert: whether to exchange dark and light: ink on paper becomes light.
  """

  side: int
  mode: Literal["RGB", "L"] = "RGB"
  invert: bool = False

  def __post_init__(self):
    if type(self.side) is not int or not 1 <= self.side <= 4096:
      raise ValueError(f"expected a side of 1..4096 pixels, got {self.side!r}")
    if self.mode not in _CHANNELS:
      raise ValueError(f"expected the mode RGB or L, got {self.mode!r:.20}")
    if type(self.invert) is not bool:
      raise ValueError(f"expected invert to be a bool, got {self.invert!r:.20}")

  @property
  def shape(self) -> tuple[int, int, int]:
    """Of one image: height, width, channels."""
    return (self.side, self.side, _CHANNELS[self.mode])

  def read(self, pictures: Any) -> np.ndarray:
    """uint8 [n height width channels].

    Args:
      pictures: a file, a folder, a PIL image, or several of these.
    """
    found = [self._one(item) for item in expanded(pictures)]
    if not found:
      raise DataError("expected at least one image, got none")
    return np.stack(found)

  def _one(self, item: Any) -> np.ndarray:
    how = (self.side, self.mode, self.invert)
    if isinstance(item, pathlib.Path):
      return images.square(str(item), disk.read(item), *how)
    return images.square_of("a PIL image", item, *how)


def of_shape(shape: Iterable[int], invert: bool = False) -> Preprocess | None:
  """What makes images of this shape; None if they are no square pictures."""
  sides = {channels: mode for mode, channels in _CHANNELS.items()}
  height, *rest = shape
  if len(rest) != 2 or rest[0] != height or rest[1] not in sides:
    return None
  return Preprocess(height, sides[rest[1]], invert)


def expanded(pictures: Any) -> list[Any]:
  """Paths of single files, and PIL images; folders become their files."""
  if isinstance(pictures, str | os.PathLike):
    path = pathlib.Path(os.path.expanduser(pictures))
    return files_of(path) if os.path.isdir(path) else [path]
  if hasattr(pictures, "convert"):  # a PIL image
    return [pictures]
  if isinstance(pictures, Iterable) and not hasattr(pictures, "dtype"):
    return [item for part in pictures for item in expanded(part)]
  raise DataError(
    "expected a file, a folder, a PIL image or a list of them, got"
    f" {type(pictures).__name__}"
  )


def files_of(folder: pathlib.Path) -> list[pathlib.Path]:
  """The image files of a folder, by name; there must be one at least."""
  try:
    found = image_files(folder)
  except OSError as error:
    raise DataError(f"{folder}: {error.strerror}") from error
  if not found:
    raise DataError(
      f"{folder}: no image in this folder; known endings: {' '.join(SUFFIXES)}"
    )
  return found


def image_files(folder: pathlib.Path) -> list[pathlib.Path]:
  """The image files of a folder, by name."""
  return sorted(path for path in folder.iterdir() if is_image(path))


def is_image(path: pathlib.Path) -> bool:
  """Whether the name is that of an image that is not hidden."""
  return path.suffix.lower() in SUFFIXES and path.name[0] != "."
