"""Finding and opening data files; whatever is wrong is a `DataError`."""

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
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from data_files import errors, official

# What the readers of the standard library raise at damaged files.
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

_BUFFER = 1 << 18


def find(
  name: str,
  data_dir: pathlib.Path | None,
  folders: Iterable[str],
  patterns: Iterable[str],
  advice: str,
) -> tuple[pathlib.Path, str]:
  """The first file or folder that is there, and the pattern it matches.

  Args:
    name: the task, for the message of the error if nothing is there.
    data_dir: where to look.
    folders: folders below data_dir, "" for itself, in the order of looking.
    patterns: names or globs to look for in each folder; of several files that
      match, the last by name counts.
    advice: what to fetch from where, for the message.
  """
  folders, patterns = list(folders), list(patterns)
  wanted = ", ".join(patterns)
  if data_dir is None:
    raise errors.DataError(
      f"{name} needs data_dir, a folder with one of {wanted}. {advice}"
    )
  for folder in folders:
    for pattern in patterns:
      found = sorted((data_dir / folder).glob(pattern))
      if found:
        return found[-1], pattern
  places = ", ".join(str(data_dir / folder) for folder in folders)
  raise errors.DataError(
    f"no data of {name}: looked for {wanted} in {places}. {advice}"
  )


def damaged(path: pathlib.Path, why: object) -> errors.DataError:
  """An error about a file; for a known archive, whether it is the true one."""
  message = f"{path}: {why}"
  true = official.BY_NAME.get(path.name)
  # A file without leave to read it has no checksum to compare.
  if true and path.is_file() and os.access(path, os.R_OK):
    with path.open("rb") as file:
      md5 = hashlib.file_digest(file, "md5").hexdigest()
    if md5 == true.md5:
      message += "; the file is the official one, by its MD5"
    else:
      message += (
        f"; the file has the MD5 {md5}, the official one {true.md5}: if it"
        f" is incomplete, fetch it again from {true.url}"
      )
  return errors.DataError(message)


def read(path: pathlib.Path) -> bytes:
  """The bytes of a file that must not be empty."""
  try:
    data = path.read_bytes()
  except OSError as error:
    raise damaged(path, error.strerror) from error
  if not data:
    raise damaged(path, "the file is empty")
  return data


def lines(path: pathlib.Path) -> Iterator[tuple[str, bytes]]:
  """Yields "file, line n" and the line; unpacks .gz and .xz."""
  openers = {".gz": gzip.open, ".xz": lzma.open}
  number = 0
  if not path.exists():
    raise errors.DataError(f"{path}: no such file")
  try:
    with openers.get(path.suffix, open)(path, "rb") as file:
      for number, line in enumerate(file, start=1):
        yield f"{path}, line {number}", line.rstrip(b"\r\n")
  except _DAMAGE as error:
    raise damaged(path, f"not readable after line {number}: {error}") from error
  if number == 0:
    raise damaged(path, "the file is empty")


def json_lines(path: pathlib.Path) -> Iterator[tuple[str, dict[str, Any]]]:
  """Yields "file, line n" and the JSON object of the line."""
  for where, line in lines(path):
    try:
      item = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
      raise errors.DataError(
        f"{where}: expected a JSON object in UTF-8: {error}"
      ) from error
    if not isinstance(item, dict):
      raise errors.DataError(
        f"{where}: expected a JSON object, got {reprlib.repr(item)}"
      )
    yield where, item


def json_text(where: str, item: dict[str, Any]) -> bytes:
  """The field `text` of a JSON object, in UTF-8."""
  text = item.get("text")
  if not isinstance(text, str) or not text:
    raise errors.DataError(
      f"{where}: expected a text in the field text, got {reprlib.repr(text)}"
    )
  try:
    return text.encode()
  except UnicodeEncodeError as error:
    raise errors.DataError(
      f"{where}: the text is not Unicode: {error}"
    ) from error


def checked_label(where: str, label: object, num_classes: int) -> int:
  """A label, if it is one."""
  if type(label) is not int or not 0 <= label < num_classes:
    raise errors.DataError(
      f"{where}: expected a label 0..{num_classes - 1},"
      f" got {reprlib.repr(label)}"
    )
  return label


def arrays(path: pathlib.Path, names: Iterable[str]) -> list[np.ndarray]:
  """The named arrays of an .npz file."""
  try:
    with zipfile.ZipFile(path) as archive:
      missing = {f"{name}.npy" for name in names} - set(archive.namelist())
      if missing:
        raise damaged(path, f"has no {', '.join(sorted(missing))}")
      # Reading an entry whole checks it before its header is believed.
      entries = [archive.read(f"{name}.npy") for name in names]
    return [
      np.lib.format.read_array(io.BytesIO(entry), allow_pickle=False)
      for entry in entries
    ]
  except (*_DAMAGE, SyntaxError, tokenize.TokenError) as error:
    raise damaged(path, f"not a whole .npz file: {error}") from error


def members(
  path: pathlib.Path, wanted: re.Pattern[str]
) -> Iterator[tuple[str, bytes]]:
  """Yields name and bytes of the wanted files of a folder, .tar.gz or .zip.

  Names begin at the folder, or are those in the archive; nothing is unpacked
  to the disk. An archive must be whole up to its end.
  """
  if path.is_dir():
    reader = _folder_members
  else:
    reader = _zip_members if path.suffix == ".zip" else _archive_members
  found = False
  for name, data in reader(path, wanted):
    found = True
    if not data:
      raise damaged(path, f"{name} is empty")
    yield name, data
  if not found:
    raise damaged(path, f"has no file like {wanted.pattern}")


def parsed(
  path: pathlib.Path,
  wanted: re.Pattern[str],
  parse: Callable[[bytes], Any],
  names: Iterable[str],
) -> list[Any]:
  """parse(data) of the `members` whose first group in wanted is in names."""
  found = {}
  for name, data in members(path, wanted):
    try:
      found[wanted.fullmatch(name)[1]] = parse(data)
    except errors.DataError as error:
      raise damaged(path, f"{name}: {error}") from error
  missing = [name for name in names if name not in found]
  if missing:
    raise damaged(path, f"has no {', '.join(missing)}")
  return [found[name] for name in names]


def _folder_members(path, wanted):
  for folder, _, files in os.walk(path):
    for file in files:
      full = pathlib.Path(folder, file)
      name = full.relative_to(path.parent).as_posix()
      if wanted.fullmatch(name):
        yield name, read(full)


def _archive_members(path, wanted):
  try:
    with _Gzip(path) as stream:
      with tarfile.open(fileobj=stream, mode="r|", bufsize=_BUFFER) as archive:
        for member in archive:
          name = member.name.removeprefix("./")
          if member.isreg() and wanted.fullmatch(name):
            yield name, archive.extractfile(member).read()
      stream.check_end()
  except _DAMAGE as error:
    raise damaged(path, f"the archive is damaged: {error}") from error


def _zip_members(path, wanted):
  try:
    with zipfile.ZipFile(path) as archive:
      _check_entries(path, len(archive.infolist()))
      for member in archive.infolist():
        if not member.is_dir() and wanted.fullmatch(member.filename):
          yield member.filename, archive.read(member)
  except _DAMAGE as error:
    raise damaged(path, f"the archive is damaged: {error}") from error


def _check_entries(path, found):
  """Compares the number of entries with the one at the end of the archive.

  zipfile itself does not miss an entry that a damaged one before it covers.
  """
  with path.open("rb") as file:
    file.seek(max(0, path.stat().st_size - (1 << 16) - 22))
    tail = file.read()
  end = tail.rfind(b"PK\5\6")
  (count,) = struct.unpack_from("<H", tail, end + 10)
  if count not in (found, 0xFFFF):  # the latter where there are more
    raise zipfile.BadZipFile(f"it has {count} entries, {found} were found")


class _Gzip(gzip.GzipFile):
  """Remembers its last bytes: a whole tar ends with two blocks of zeros.

  tarfile itself takes a tar that breaks off between two files for a whole one.
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
