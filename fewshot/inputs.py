"""Checks what a classifier is given: names, images and vectors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from data_files import disk
from data_files.errors import excerpt

_LONGEST_NAME = 200


def check_name(name: Any) -> None:
  """Raises unless it is a text that can name a class."""
  if not isinstance(name, str):
    raise ValueError(f"a class needs a text as name, got {excerpt(repr(name))}")
  if not name.strip() or not name.isprintable() or len(name) > _LONGEST_NAME:
    raise ValueError(
      f"a class needs a name of 1 to {_LONGEST_NAME} printable characters, got"
      f" {name[:60]!a}"
    )


def checked_images(images: Any, shape: Sequence[int]) -> np.ndarray:
  """Inputs of a network, [n, *shape]: images in uint8, features in float32."""
  dtype = np.uint8 if len(shape) == 3 else np.float32
  images = np.asarray(images)
  if images.shape[1:] != tuple(shape) or images.dtype != dtype:
    raise ValueError(
      f"expected {np.dtype(dtype)} [n, {', '.join(map(str, shape))}],"
      f" got {images.dtype} {list(images.shape)}"
    )
  if not len(images):
    raise ValueError("expected at least one image, got none")
  return images


def checked_vectors(vectors: Any, shape: Sequence[int] | None) -> np.ndarray:
  """Vectors [n, *shape] in float32; without a shape, of any length."""
  try:
    rows = np.asarray(vectors)
  except ValueError as error:
    raise ValueError(f"expected vectors [n d]: {excerpt(error)}") from error
  expected = list(shape or rows.shape[1:])
  wrong = rows.dtype.kind != "f" or rows.ndim != 2 or not rows.size
  if wrong or list(rows.shape[1:]) != expected:
    raise ValueError(
      f"expected vectors, floats [n, {', '.join(map(str, expected)) or 'd'}],"
      f" got {disk.described(rows)}"
    )
  rows = rows.astype(np.float32)
  wrong = np.flatnonzero(~np.isfinite(rows).all(axis=1))
  if wrong.size:
    raise ValueError(f"row {wrong[0]}: the numbers are not all finite")
  return rows
