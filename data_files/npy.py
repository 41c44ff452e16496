"""Arrays in the .npy format, whose headers are checked and never evaluated."""

import math
import re
import sys

import numpy as np

from data_files.errors import DataError, excerpt

_MAGIC = b"\x93NUMPY"
# Bytes of the header's length, by version.
_LENGTHS = {1: 2, 2: 4, 3: 4}
# What numpy writes for numbers and text; Python 2 wrote an L after sizes.
_HEADER = re.compile(
  rb"\{'descr': '([<>|=][biufcSU]\d{1,9})', 'fortran_order': (True|False),"
  rb" 'shape': \(((?:\d{1,19}L?, ?)*(?:\d{1,19}L?)?)\),? *\} *\n?"
)


def parse(data: bytes) -> np.ndarray:
  """The array in the content of a file, read-only and without a copy."""
  length = _LENGTHS.get(data[6] if len(data) > 6 else None)
  if not data.startswith(_MAGIC) or length is None:
    raise DataError(f"expected an array, got {data[:60]!r}")
  start = 8 + length
  end = start + int.from_bytes(data[8:start], "little")
  header = _HEADER.fullmatch(data, start, end)
  if not header:
    found = excerpt(data[start : min(end, start + 1000)])
    if "'|O'" in found:
      raise DataError("it holds Python objects; save numbers or text")
    raise DataError(
      f"expected an array of numbers or text, got the header {found}"
    )
  kind, is_fortran, sizes = (group.decode() for group in header.groups())
  shape = [int(size) for size in re.findall(r"\d+", sizes)]
  try:
    dtype = np.dtype(kind)
    claimed = math.prod(shape) * dtype.itemsize
    if claimed != len(data) - end:
      raise DataError(
        f"the header says {kind} {excerpt(shape)}, {claimed:,} bytes, but"
        f" {max(0, len(data) - end):,} follow"
      )
    if dtype.kind == "U":
      codes = np.ndarray(claimed // 4, f"{kind[0]}u4", data, end)
      if codes.max(initial=0) > sys.maxunicode:
        raise DataError("its text has characters that do not exist")
    order = "F" if is_fortran == "True" else "C"
    return np.ndarray(shape, dtype, data, end, order=order)
  except (TypeError, ValueError) as error:
    raise DataError(f"not an array: {excerpt(error)}") from error
