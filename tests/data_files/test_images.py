"""Images are decoded, cropped and resized; broken ones are errors."""

import io
import sys
import threading

import numpy as np
import pytest
from PIL import Image

from data_files import errors, images
from tests.data_files import writers

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 5, 3), np.uint8)


def encoded(pixels, kind, **options):
  stream = io.BytesIO()
  Image.fromarray(pixels).save(stream, kind, **options)
  return stream.getvalue()


def test_png_is_read_and_broken_ones_are_errors():
  png = writers.png(PIXELS)
  np.testing.assert_array_equal(images.png("here", png, (4, 5, 3)), PIXELS)
  for data in (b"GIF89a", b"", *(png[:size] for size in range(8, 90, 9))):
    with pytest.raises(errors.DataError, match="here: not a PNG image"):
      images.png("here", data, (4, 5, 3))
  with pytest.raises(errors.DataError, match=r"uint8 \[4, 5\], got uint8"):
    images.png("here", png, (4, 5))


def test_png_with_other_pixels_is_an_error():
  # Decoding alone takes zeros near the end for pixels.
  pixels = np.random.default_rng(0).integers(0, 2, (32, 32), np.uint8)
  png, failures = writers.png(pixels), 0
  for start in range(len(png)):
    data = png[:start] + bytes(9) + png[start + 9 :]
    try:
      np.testing.assert_array_equal(images.png("here", data, (32, 32)), pixels)
    except errors.DataError:
      failures += 1
  assert failures > 0.9 * len(png)


def test_the_middle_is_taken_and_averaged():
  wide = np.zeros((4, 8, 3), np.uint8)
  wide[:, 2:6] = np.arange(48).reshape(4, 4, 3)
  means = wide[:, 2:6].reshape(2, 2, 2, 2, 3).mean((1, 3))
  for pixels, expected in (
    (wide, means),
    (wide.swapaxes(0, 1), means.swapaxes(0, 1)),
  ):
    found = images.square("here", writers.png(pixels), 2)
    np.testing.assert_array_equal(found, np.floor(expected + 0.5))
  same = images.square("here", writers.png(wide[:, 2:6]), 4)
  np.testing.assert_array_equal(same, wide[:, 2:6])


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM"])
def test_the_common_formats_are_read(kind):
  found = images.square("here", encoded(np.full((9, 9), 77, np.uint8), kind), 6)
  assert found.shape == (6, 6, 3)
  assert np.abs(found.astype(int) - 77).max() <= 2


def test_gray_transparent_and_turned_images_are_read():
  gray = images.square("here", writers.png(PIXELS[..., 0]), 3, "L")
  assert gray.shape == (3, 3, 1)
  clear = np.concatenate([PIXELS, PIXELS[..., :1]], axis=-1)
  cut = PIXELS[:, :4]
  found = images.square("here", writers.png(clear), 4)
  np.testing.assert_array_equal(found, cut)
  turned = Image.Exif()
  turned[0x0112] = 6
  png = encoded(cut, "PNG", exif=turned)
  np.testing.assert_array_equal(
    images.square("here", png, 4), np.rot90(cut, -1)
  )


def test_a_missing_package_is_named(monkeypatch):
  monkeypatch.setitem(sys.modules, "PIL", None)
  with pytest.raises(errors.DataError, match="needs the package pillow"):
    images.square("here", b"", 4)


def test_deep_images_are_errors():
  deep = encoded(np.zeros((4, 4), np.uint16), "PNG")
  with pytest.raises(errors.DataError, match=r"here: .*more than 8 bits"):
    images.square("here", deep, 4)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF"])
@pytest.mark.filterwarnings("ignore")
def test_damaged_images_are_read_or_errors(kind):
  good = encoded(np.tile(PIXELS, (8, 8, 1)), kind)
  failures = 0
  for data in writers.damaged_copies(good, 25):
    try:
      assert images.square("here", data, 16).shape == (16, 16, 3)
    except errors.DataError as error:
      assert "here: not a readable image" in str(error)  # noqa: PT017
      failures += 1
  assert failures > 8


def test_a_stack_is_in_order_and_by_several_threads():
  threads = set()

  def load(index):
    threads.add(threading.get_ident())
    return np.full(2, index % 256, np.uint8)

  found = images.stack(load, (1234, 2))
  np.testing.assert_array_equal(found[:, 1], np.arange(1234) % 256)
  assert threading.get_ident() not in threads


def test_an_error_ends_the_stack():
  seen = []

  def load(index):
    seen.append(index)
    raise errors.DataError(f"image {index}")

  with pytest.raises(errors.DataError, match=r"image 0$"):
    images.stack(load, (100_000, 2))
  assert len(seen) < 20


def test_the_first_of_several_errors_is_raised():
  later_failed = threading.Event()

  def load(index):
    if index == 150:
      assert later_failed.wait(30)
      raise errors.DataError("image 150")
    if index == 250:
      later_failed.set()
      raise errors.DataError("image 250")
    return np.zeros(2, np.uint8)

  with pytest.raises(errors.DataError, match="image 150"):
    images.stack(load, (1000, 2))
