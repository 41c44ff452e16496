"""TFRecord files and the tf.train.Example in each record, without TensorFlow.

A TFRecord file is a chain of records: the length (8 bytes), its checksum (4),
the data, its checksum (4). An Example is a protocol buffer that maps the names
of features to lists of values.
"""

import functools
import pathlib
import struct
from collections.abc import Iterator

import numpy as np

from data_files import disk

# Name of a feature -> its values; features of floats have none.
Example = dict[str, list[bytes | int]]

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_BLOCK = 4096


def records(path: pathlib.Path) -> list[bytes]:
  """The records of a file, all checked."""
  data = disk.read(path)
  found, start = [], 0
  while start < len(data):
    where = f"record {len(found)}"
    try:
      length, checksum = _HEADER.unpack_from(data, start)
      if masked_crc32c(data[start : start + 8]) != checksum:
        raise disk.damaged(path, f"{where}: wrong checksum of its length")
      start += _HEADER.size
      end = start + length
      (checksum,) = _FOOTER.unpack_from(data, end)
    except struct.error as error:
      raise disk.damaged(path, f"{where}: the file breaks off") from error
    if masked_crc32c(data[start:end]) != checksum:
      raise disk.damaged(path, f"{where}: wrong checksum of its data")
    found.append(data[start:end])
    start = end + _FOOTER.size
  return found


def masked_crc32c(data: bytes) -> int:
  """The checksum of TFRecord files, for data of four bytes or more."""
  crc = _crc32c(data)
  return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def parse(record: bytes) -> Example:
  """The Example in a record; a ValueError if there is none."""
  example = {}
  for features in _parts(record, 1):
    for entry in _parts(features, 1):
      name, feature = b"", b""
      for field, value in _fields(entry):
        if field == 1:
          name = _expect_bytes(value)
        elif field == 2:
          feature = _expect_bytes(value)
      example[name.decode()] = _values(feature)
  return example


def _crc32c(data: bytes) -> int:
  """CRC-32C, in blocks: the XOR of what each byte adds by its place."""
  register = 0xFFFFFFFF
  size, blocks = len(data), -(-len(data) // _BLOCK)
  for i in range(blocks):
    block = data[i * size // blocks : (i + 1) * size // blocks]
    # The register of the bytes before acts as a change of the first four.
    head = int.from_bytes(block[:4], "little") ^ register
    block = np.frombuffer(head.to_bytes(4, "little") + block[4:], np.uint8)
    places = np.arange(_BLOCK - len(block), _BLOCK)
    register = int(np.bitwise_xor.reduce(_crc_table()[places, block]))
  return register ^ 0xFFFFFFFF


@functools.cache
def _crc_table() -> np.ndarray:
  """What each value of a byte adds, at each place of a block [place value]."""
  last = np.arange(256, dtype=np.uint32)
  for _ in range(8):
    last = np.where(last & 1, last >> 1 ^ np.uint32(0x82F63B78), last >> 1)
  rows = [last]
  for _ in range(_BLOCK - 1):
    rows.append(last[rows[-1] & 255] ^ rows[-1] >> 8)
  return np.stack(rows[::-1])


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
  """Yields number and value of the fields of a protocol buffer."""
  position = 0
  while position < len(message):
    tag, position = _varint(message, position)
    if tag & 7 == 0:
      value, position = _varint(message, position)
    elif tag & 7 == 2:
      size, position = _varint(message, position)
      value = message[position : position + size]
      position += size
      if position > len(message):
        raise ValueError("a field breaks off")
    else:
      raise ValueError(f"unexpected wire type {tag & 7}")
    yield tag >> 3, value


def _parts(message: bytes, number: int) -> list[bytes]:
  """The values of a field that holds bytes or messages."""
  return [
    _expect_bytes(value) for field, value in _fields(message) if field == number
  ]


def _expect_bytes(value: int | bytes) -> bytes:
  if not isinstance(value, bytes):
    raise ValueError("a number where bytes are expected")
  return value


def _values(feature: bytes) -> list[bytes | int]:
  """The values of a BytesList or an Int64List."""
  values = []
  for kind, content in _fields(feature):
    if kind == 1:
      values += _parts(_expect_bytes(content), 1)
    elif kind == 3:
      values += _integers(_expect_bytes(content))
  return values


def _integers(message: bytes) -> list[int]:
  """The values of an Int64List, packed or one by one."""
  values = []
  for field, value in _fields(message):
    if field == 1 and isinstance(value, bytes):
      position = 0
      while position < len(value):
        number, position = _varint(value, position)
        values.append(number)
    elif field == 1:
      values.append(value)
  return values


def _varint(message: bytes, position: int) -> tuple[int, int]:
  """A number, seven bits a byte, and the position after it."""
  value = 0
  for shift, byte in enumerate(message[position : position + 10]):
    value |= (byte & 127) << 7 * shift
    if byte < 128:
      return value, position + shift + 1
  raise ValueError("a number breaks off")
