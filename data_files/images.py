"""Decodes images with Pillow, many at a time in several threads."""

import concurrent.futures
import contextlib
import io
import math
import pathlib
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from data_files import disk, limit
from data_files.errors import DataError

# Image modes with at most 8 bits per channel.
_PLAIN_MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "YCbCr")
_FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_PNG = b"\x89PNG"
_THREADS, _PER_JOB = 4, 100
# Of an image and of a copy in another mode.
_BYTES_PER_PIXEL = 8


def png(where: str, data: bytes, shape: tuple[int, ...]) -> np.ndarray:
  """The pixels of a PNG image, uint8 of this shape."""
  with _opened(where, data, ("PNG",)) as image:
    width, height = image.size
    if (height, width) != shape[:2]:
      raise DataError(
        f"{where}: expected uint8 {list(shape)}, got {height} x {width} pixels"
      )
    pixels = np.asarray(image)
  if pixels.dtype != np.uint8 or pixels.shape != shape:
    raise DataError(
      f"{where}: expected uint8 {list(shape)}, got {disk.described(pixels)}"
    )
  return pixels


def encoded(pixels: np.ndarray) -> bytes:
  """An image, uint8 [height width] or [height width 3], as a PNG file."""
  from PIL import Image

  stream = io.BytesIO()
  Image.fromarray(pixels).save(stream, "PNG", compress_level=1)
  return stream.getvalue()


def square(
  where: str, data: bytes, side: int, mode: str = "RGB", invert: bool = False
) -> np.ndarray:
  """The middle square of an image, resized.

  Args:
    where: for errors.
    data: a JPEG, PNG, WebP, GIF, BMP, TIFF or PPM file.
    side: the result's side; shrinking averages the pixels covered.
    mode: "RGB" or "L".
    invert: whether to exchange dark and light first.

  Returns:
    uint8 [side side 3], or [side side 1].
  """
  with _opened(where, data, _FORMATS) as image:
    return _squared(image, side, mode, invert)


def square_of(
  where: str, image: Any, side: int, mode: str = "RGB", invert: bool = False
) -> np.ndarray:
  """The same for a PIL image."""
  with _one_line(where, "readable"):
    return _squared(image, side, mode, invert)


def _squared(image: Any, side: int, mode: str, invert: bool) -> np.ndarray:
  from PIL import ImageOps

  if image.mode not in _PLAIN_MODES:
    raise ValueError(f"more than 8 bits per channel (mode {image.mode})")
  image = ImageOps.exif_transpose(image)
  if image.mode in ("P", "PA"):
    image = image.convert("RGBA")
  image = image.convert(mode)
  if invert:
    image = ImageOps.invert(image)
  return np.asarray(_resized(image, side)).reshape(side, side, -1)


def resized(pixels: np.ndarray, side: int) -> np.ndarray:
  """An image, uint8 [height width] or [height width 3], as a square."""
  from PIL import Image

  return np.asarray(_resized(Image.fromarray(pixels), side))


def stack(
  load: Callable[[int], np.ndarray],
  shape: tuple[int, ...],
  file: pathlib.Path | None = None,
) -> np.ndarray:
  """The arrays load(0), load(1), ... as one, made by several threads.

  If several fail, the error of the first array is raised.

  Args:
    load: makes one uint8 array.
    shape: the result's shape; its first axis counts the arrays.
    file: where to save the result, as .npy.
  """
  if file is None:
    out = np.empty(shape, np.uint8)
  else:
    out = np.lib.format.open_memmap(file, "w+", np.uint8, shape)
  end = shape[0]  # later ones are no longer needed

  def fill(start: int) -> None:
    nonlocal end
    for index in range(start, start + _PER_JOB):
      if index >= end:
        return
      try:
        out[index] = load(index)
      except BaseException:
        end = min(end, index)
        raise

  with concurrent.futures.ThreadPoolExecutor(_THREADS) as pool:
    jobs = [pool.submit(fill, i) for i in range(0, shape[0], _PER_JOB)]
    try:
      for job in jobs:
        job.result()
    except BaseException:
      pool.shutdown(cancel_futures=True)
      raise
  if file is not None:
    out.flush()
  return out


def _resized(image: Any, side: int) -> Any:
  from PIL import Image

  width, height = image.size
  short = min(width, height)
  if (width, height) == (side, side):
    return image
  left, top = (width - short) // 2, (height - short) // 2
  box = (left, top, left + short, top + short)
  way = Image.Resampling.BOX if short > side else Image.Resampling.BILINEAR
  return image.resize((side, side), way, box=box)


@contextlib.contextmanager
def _opened(where: str, data: bytes, formats: tuple[str, ...]) -> Iterator[Any]:
  """Opens an image; raises DataError if anything goes wrong with it.

  Only the header has been read then, and its size is within the limit.
  """
  kind = formats[0] if len(formats) == 1 else "readable"
  with _one_line(where, kind):
    from PIL import Image

    if data.startswith(_PNG):
      # Decoding ignores the checksums of the pixels.
      with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
        image.verify()
    with Image.open(io.BytesIO(data), formats=formats) as image:
      with disk.about(pathlib.Path(where)):
        left = limit.Allowance(len(data))
        left.take(_BYTES_PER_PIXEL * math.prod(image.size))
      yield image


@contextlib.contextmanager
def _one_line(where: str, kind: str) -> Iterator[None]:
  """Turns whatever Pillow raises into DataError."""
  try:
    from PIL import Image
  except ImportError as error:
    raise DataError(f"{where}: needs the package pillow") from error
  try:
    yield
  except (
    OSError,
    EOFError,
    MemoryError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RuntimeError,
    struct.error,
    zlib.error,
    Image.DecompressionBombError,
    Image.DecompressionBombWarning,  # where warnings are errors
  ) as error:
    raise DataError(
      f"{where}: not a {kind} image: {disk.reason(error)}"
    ) from error
