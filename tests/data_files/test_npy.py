"""Arrays are read as numpy reads them; their headers are not trusted."""

import io

import numpy as np
import pytest

from data_files import npy
from tests.data_files import writers


def header(text, version=1):
  length = len(text).to_bytes(2 if version == 1 else 4, "little")
  return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode()


PLAIN = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }\n"


@pytest.mark.parametrize(
  ("data", "message"),
  [
    (
      header(PLAIN % "2199023255552,"),
      "17,592,186,044,416 bytes, but 0 follow",
    ),
    (header(PLAIN % ("-" * 6000 + "1,")), "expected an array of numbers"),
    (header(PLAIN % ("(" * 6000)), "expected an array of numbers"),
    (header(PLAIN % "0, 9999999999999999999"), "not an array"),
    (header(PLAIN % ("0, " * 100)), "not an array"),
    (header(PLAIN.replace("<f8", "<f3") % "0,"), "not an array"),
    (header(PLAIN.replace("<f8", "|O") % "1,") + bytes(8), "Python objects"),
    (header(PLAIN % "1,") + bytes(7), "8 bytes, but 7 follow"),
    (header(PLAIN % "1,", 9) + bytes(8), "expected an array, got"),
    (header(PLAIN % "1,")[:6], "expected an array, got"),
    (b"\x89PNG\r\n\x1a\n", "expected an array, got"),
    (
      header(PLAIN.replace("<f8", "<U1") % "1,") + b"\0\0\x11\0",
      "characters that do not exist",
    ),
  ],
)
def test_headers_of_arrays_are_refused_before_memory_is_asked_for(
  data, message
):
  error = writers.error_of(npy.parse, data)
  assert message in error
  assert "pickle" not in error
  assert len(error) < 300


@pytest.mark.parametrize(
  "array",
  [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
    np.zeros((0, 5), np.uint8),
    np.array(["abc", "\u00e9"]),
    np.array("text"),
    np.array([True, False]),
  ],
)
def test_arrays_are_read_as_numpy_reads_them(array):
  stream = io.BytesIO()
  np.save(stream, array)
  found = npy.parse(stream.getvalue())
  assert found.dtype == array.dtype
  np.testing.assert_array_equal(found, array)
