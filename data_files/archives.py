"""Reads archives entry by entry; what they unpack to is limited.

Nothing is written to disk, and an archive must be complete to its end.
"""

import gzip
import os
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from typing import BinaryIO

from data_files import limit
from data_files.errors import DataError, excerpt

_BUFFER = 1 << 18
# zipfile cannot limit what other methods unpack to.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

# Names and bytes.
Entries = Iterator[tuple[str, bytes]]


def allowance(file: BinaryIO) -> limit.Allowance:
  """What an open file may unpack to."""
  return limit.Allowance(os.fstat(file.fileno()).st_size)


def tar_entries(file: BinaryIO, is_wanted: Callable[[str], object]) -> Entries:
  """The wanted files of a .tar.gz archive."""
  with _Gzip(file) as stream:
    with tarfile.open(fileobj=stream, mode="r|", bufsize=_BUFFER) as archive:
      for member in archive:
        name = member.name.removeprefix("./")
        if member.isreg() and is_wanted(name):
          if member.issparse():  # may claim any size
            raise DataError(f"{excerpt(name)} is stored as a sparse file")
          yield name, archive.extractfile(member).read()
    stream.check_end()


def zip_entries(file: BinaryIO, is_wanted: Callable[[str], object]) -> Entries:
  """The wanted files of a .zip archive."""
  left = allowance(file)
  with zipfile.ZipFile(file) as archive:
    _check_number(file, len(archive.infolist()))
    for member in archive.infolist():
      name = member.filename
      if name.endswith("/") or not is_wanted(name):  # is_dir fails on ""
        continue
      if member.compress_type not in _METHODS:
        raise DataError(f"{excerpt(name)} is neither stored nor deflated")
      left.take(member.file_size)
      with archive.open(member) as content:
        # Without a number, a deflated entry is unpacked beyond its size.
        yield name, content.read(member.file_size)


def _check_number(file, found):
  """Compares the number of entries with the one at the end of the archive.

  zipfile does not notice an entry hidden by a damaged one before it.
  """
  size = file.seek(0, os.SEEK_END)
  file.seek(max(0, size - (1 << 16) - 22))
  tail = file.read()
  end = tail.rfind(b"PK\5\6")
  (count,) = struct.unpack_from("<H", tail, end + 10)
  if count not in (found, 0xFFFF):  # the latter where there are more
    raise zipfile.BadZipFile(f"it has {count} entries, {found} were found")


class _Gzip(gzip.GzipFile):
  """Counts what is read, and remembers the last bytes.

  A complete tar ends with two blocks of zeros, but tarfile accepts one that is
  truncated between two files.
  """

  def __init__(self, file):
    super().__init__(fileobj=file)
    self._left, self._tail = allowance(file), b""

  def read(self, size=-1):
    data = super().read(size)
    self._left.take(len(data))
    self._tail = (self._tail + data[-1024:])[-1024:]
    return data

  def check_end(self):
    while self.read(1 << 20):
      pass
    if self._tail != bytes(1024):
      raise EOFError("it has no end mark")
