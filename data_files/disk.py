"""Finds and opens data files; raises `DataError` if anything is wrong."""

import contextlib
import gzip
import hashlib
import io
import json
import lzma
import os
import pathlib
import re
import reprlib
import struct
import tarfile
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np

from data_files import official
from data_files.errors import DataError

# What the standard library's readers raise on damaged files.
_DAMAGE = (
  OSError,
  EOFError,
  ValueError,
  RuntimeError,
  struct.error,
  zlib.error,
  lzma.LZMAError,
  tarfile.TarError,
  zipfile.BadZipFile,
)
_OPENERS = {".gz": gzip.open, ".xz": lzma.open}
_BUFFER = 1 << 18


def find(
  name: str,
  data_dir: pathlib.Path | None,
  folders: Iterable[str],
  readers: Mapping[str, Callable],
  advice: str,
) -> tuple[pathlib.Path, Callable]:
  """The first file or folder that exists, and its reader.

  Args:
    name: the data, for the error if nothing is found.
    data_dir: where to look.
    folders: folders below data_dir, "" for itself, in search order.
    readers: what reads a file, by name or glob; if several files match, the
      last by name is used.
    advice: what to do if nothing is found, for the error.
  """
  wanted = ", ".join(readers)
  if data_dir is None:
    raise DataError(
      f"{name} needs data_dir, a folder with one of {wanted}. {advice}"
    )
  places = [data_dir / folder for folder in folders]
  for place in places:
    for pattern, reader in readers.items():
      if found := sorted(place.glob(pattern)):
        return found[-1], reader
  raise DataError(
    f"no data for {name}: looked for {wanted} in"
    f" {', '.join(map(str, places))}. {advice}"
  )


def damaged(path: pathlib.Path, why: object) -> DataError:
  """An error about a file; for a published archive, whether it is intact."""
  message = f"{path}: {why}"
  published = official.BY_NAME.get(path.name)
  if published and path.is_file() and os.access(path, os.R_OK):
    with path.open("rb") as file:
      md5 = hashlib.file_digest(file, "md5").hexdigest()
    if md5 == published.md5:
      message += "; its MD5 is that of the published file"
    else:
      message += (
        f"; its MD5 is {md5}, the published file's is {published.md5}: if"
        f" the download is incomplete, download {published.url} again"
      )
  return DataError(message)


@contextlib.contextmanager
def about(path: pathlib.Path) -> Iterator[None]:
  """Names the file in errors, unless they name it or another in its folder."""
  try:
    yield
  except DataError as error:
    if f"{path.parent}{os.sep}" in str(error):
      raise
    raise damaged(path, error) from error


def read(path: pathlib.Path) -> bytes:
  """The bytes of a file, which must not be empty."""
  try:
    data = path.read_bytes()
  except OSError as error:
    raise damaged(path, error.strerror) from error
  if not data:
    raise damaged(path, "the file is empty")
  return data


def lines(path: pathlib.Path) -> Iterator[tuple[str, bytes]]:
  """Yields "file, line n" and the line; unpacks .gz and .xz."""
  number = 0
  if not path.exists():
    raise DataError(f"{path}: no such file")
  try:
    with _OPENERS.get(path.suffix, open)(path, "rb") as file:
      for number, line in enumerate(file, start=1):
        yield f"{path}, line {number}", line.rstrip(b"\r\n")
  except _DAMAGE as error:
    raise damaged(path, f"cannot read past line {number}: {error}") from error
  if number == 0:
    raise damaged(path, "the file is empty")


def json_texts(path: pathlib.Path) -> Iterator[tuple[str, dict, bytes]]:
  """Yields "file, line n", the line's JSON object, and its UTF-8 text."""
  for where, line in lines(path):
    try:
      item = json.loads(line.decode("utf-8"))
      text = item["text"].encode()
    except (ValueError, RecursionError) as error:
      raise DataError(
        f"{where}: expected a JSON object in UTF-8: {error}"
      ) from error
    except (TypeError, LookupError, AttributeError) as error:
      raise DataError(
        f"{where}: expected a JSON object whose text is a string, got"
        f" {reprlib.repr(item)}"
      ) from error
    if not text:
      raise DataError(f"{where}: the text is empty")
    yield where, item, text


def check_labels(labels: np.ndarray, count: int, num_classes: int) -> None:
  """Raises a DataError unless there are `count` labels 0..num_classes-1."""
  if labels.dtype.kind not in "iu" or labels.shape != (count,):
    raise DataError(
      f"expected {count} integers as labels, got {described(labels)}"
    )
  wrong = np.flatnonzero((labels < 0) | (labels >= num_classes))
  if wrong.size:
    raise DataError(
      f"row {wrong[0]}: expected a label 0..{num_classes - 1},"
      f" got {labels[wrong[0]]}"
    )


def described(array: np.ndarray) -> str:
  """Type and shape, for errors."""
  return f"{array.dtype} {list(array.shape)}"


def arrays(path: pathlib.Path, names: Iterable[str]) -> list[np.ndarray]:
  """The named arrays of an .npz file."""
  try:
    with zipfile.ZipFile(path) as archive:
      missing = {f"{name}.npy" for name in names} - set(archive.namelist())
      if missing:
        raise damaged(path, f"has no {', '.join(sorted(missing))}")
      # Reading a whole entry verifies its checksum before its header is used.
      entries = [archive.read(f"{name}.npy") for name in names]
    return [
      np.lib.format.read_array(io.BytesIO(entry), allow_pickle=False)
      for entry in entries
    ]
  except (*_DAMAGE, SyntaxError, tokenize.TokenError) as error:
    raise damaged(path, f"not a valid .npz file: {error}") from error


def members(
  path: pathlib.Path, wanted: re.Pattern[str]
) -> Iterator[tuple[str, bytes]]:
  """Yields name and bytes of the wanted files in a .tar.gz or .zip archive.

  Nothing is unpacked to disk, and the archive must be complete to its end.
  """
  reader = _zip_members if path.suffix == ".zip" else _tar_members
  found = False
  try:
    for name, data in reader(path, wanted):
      found = True
      if not data:
        raise damaged(path, f"{name} is empty")
      yield name, data
  except _DAMAGE as error:
    raise damaged(path, f"the archive is damaged: {error}") from error
  if not found:
    raise damaged(path, f"has no file like {wanted.pattern}")


def _tar_members(path, wanted):
  with _Gzip(path) as stream:
    with tarfile.open(fileobj=stream, mode="r|", bufsize=_BUFFER) as archive:
      for member in archive:
        name = member.name.removeprefix("./")
        if member.isreg() and wanted.fullmatch(name):
          yield name, archive.extractfile(member).read()
    stream.check_end()


def _zip_members(path, wanted):
  with zipfile.ZipFile(path) as archive:
    _check_entries(path, len(archive.infolist()))
    for member in archive.infolist():
      if not member.is_dir() and wanted.fullmatch(member.filename):
        yield member.filename, archive.read(member)


def _check_entries(path, found):
  """Compares the number of entries with the one at the end of the archive.

  zipfile does not notice an entry hidden by a damaged one before it.
  """
  with path.open("rb") as file:
    file.seek(max(0, path.stat().st_size - (1 << 16) - 22))
    tail = file.read()
  end = tail.rfind(b"PK\5\6")
  (count,) = struct.unpack_from("<H", tail, end + 10)
  if count not in (found, 0xFFFF):  # the latter where there are more
    raise zipfile.BadZipFile(f"it has {count} entries, {found} were found")


class _Gzip(gzip.GzipFile):
  """Remembers the last bytes: a complete tar ends with two blocks of zeros.

  tarfile accepts a tar that is truncated between two files.
  """

  tail = b""

  def read(self, size=-1):
    data = super().read(size)
    self.tail = (self.tail + data[-1024:])[-1024:]
    return data

  def check_end(self):
    while self.read(1 << 20):
      pass
    if self.tail != bytes(1024):
      raise EOFError("it has no end mark")
