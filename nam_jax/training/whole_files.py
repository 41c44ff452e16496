"""Files that are written as a whole or not at all, and their checksums."""

import io
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def write_bytes(path: str | os.PathLike, content: bytes) -> None:
  """Replaces the file in one step: a kill leaves the old one or the new one."""
  path = Path(path)
  part = path.with_name(path.name + ".part")
  with open(part, "wb") as file:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())
  os.replace(part, path)


def write_text(path: str | os.PathLike, text: str) -> None:
  """`write_bytes` in UTF-8."""
  write_bytes(path, text.encode())


def write_json(path: str | os.PathLike, content: Any) -> None:
  """`write_bytes` of indented JSON."""
  write_text(path, json.dumps(content, indent=2) + "\n")


def write_npz(path: str | os.PathLike, arrays: Mapping[str, Any]) -> None:
  """`write_bytes` of named arrays, for `numpy.load`."""
  stream = io.BytesIO()
  np.savez(stream, **arrays)
  write_bytes(path, stream.getvalue())


def checksum(path: str | os.PathLike) -> list[int]:
  """Size and CRC-32 of a file."""
  value = size = 0
  with open(path, "rb") as file:
    while block := file.read(1 << 20):
      value, size = zlib.crc32(block, value), size + len(block)
  return [size, value]
