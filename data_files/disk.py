"""Finds and opens data files; raises `DataError` if anything is wrong."""

import contextlib
import gzip
import hashlib
import json
import lzma
import os
import pathlib
import re
import reprlib
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import BinaryIO

import numpy as np

from data_files import archives, files_read, npy, official
from data_files.errors import DataError, excerpt
from nam_jax.training import regular_files

# What the standard library's readers raise on damaged files.
_DAMAGE = (
  OSError,
  EOFError,
  MemoryError,
  ValueError,
  RuntimeError,
  struct.error,
  zlib.error,
  lzma.LZMAError,
  tarfile.TarError,
  zipfile.BadZipFile,
)
_UNPACKERS = {".gz": gzip.open, ".xz": lzma.open}
_LONGEST_NAME = 200


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


def reason(error: Exception) -> str:
  """Why a file could not be read, in one line."""
  if isinstance(error, MemoryError):
    return "it does not fit into memory"
  return excerpt(getattr(error, "strerror", None) or error)


@contextlib.contextmanager
def about(path: pathlib.Path) -> Iterator[None]:
  """Names the file in errors, unless they name it or another in its folder."""
  try:
    yield
  except DataError as error:
    message = str(error)
    if f"{path.parent}{os.sep}" in message or message.startswith(f"{path}"):
      raise
    raise damaged(path, error) from error


def read(path: pathlib.Path) -> bytes:
  """The bytes of a file, which must not be empty."""
  try:
    with _opened(path) as file:
      data = file.read()
  except (OSError, MemoryError) as error:
    raise damaged(path, reason(error)) from error
  if not data:
    raise damaged(path, "the file is empty")
  return data


def lines(path: pathlib.Path) -> Iterator[tuple[str, bytes]]:
  """Yields "file, line n" and the line; unpacks .gz and .xz."""
  number = 0
  files_read.note(path)
  try:
    with about(path), _opened(path) as packed:
      left = archives.allowance(packed)
      unpack = _UNPACKERS.get(path.suffix, contextlib.nullcontext)
      with unpack(packed) as file:
        while line := file.readline(left.left + 1):
          left.take(len(line))
          number += 1
          yield f"{path}, line {number}", line.rstrip(b"\r\n")
  except _DAMAGE as error:
    why = f"cannot read past line {number}: {reason(error)}"
    raise damaged(path, why) from error
  if number == 0:
    raise damaged(path, "the file is empty")


def _opened(path: pathlib.Path) -> BinaryIO:
  try:
    return regular_files.open_file(path)
  except FileNotFoundError as error:
    raise damaged(path, "no such file") from error
  except (OSError, ValueError) as error:
    raise damaged(path, reason(error)) from error


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
        f" {excerpt(reprlib.repr(item))}"
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
  names = list(names)
  found = named_arrays(path, names)
  missing = [f"{name}.npy" for name in names if name not in found]
  if missing:
    raise damaged(path, f"has no {', '.join(sorted(missing))}")
  return [found[name] for name in names]


def named_arrays(
  path: pathlib.Path, names: Collection[str] | None = None
) -> dict[str, np.ndarray]:
  """Arrays of an .npz file by name: those among names, or all of them."""

  def is_wanted(entry: str) -> bool:
    name = entry.removesuffix(".npy")
    return name != entry and (names is None or name in names)

  found = {}
  # Checksums are verified before headers are used.
  for entry, data in _entries(path, archives.zip_entries, is_wanted):
    with about(path), about(pathlib.Path(entry)):
      found[entry.removesuffix(".npy")] = npy.parse(data)
  return found


def members(
  path: pathlib.Path, wanted: re.Pattern[str]
) -> Iterator[tuple[str, bytes]]:
  """Yields name and bytes of the wanted files in a .tar.gz or .zip archive."""
  is_zip = path.suffix == ".zip"
  reader = archives.zip_entries if is_zip else archives.tar_entries
  found = False
  for name, data in _entries(path, reader, wanted.fullmatch):
    found = True
    if not data:
      raise damaged(path, f"{name} is empty")
    yield name, data
  if not found:
    raise damaged(path, f"has no file like {wanted.pattern}")


def _entries(path, reader, is_wanted):
  """Yields what the reader finds; names must be short and different."""
  seen = set()
  files_read.note(path)
  try:
    with about(path), _opened(path) as file:
      for name, data in reader(file, is_wanted):
        if name in seen:
          raise DataError(f"two files have the name {name}")
        if len(name) > _LONGEST_NAME or not name.isprintable():
          raise DataError(f"a file has the odd name {excerpt(name)}")
        seen.add(name)
        yield name, data
  except _DAMAGE as error:
    raise damaged(path, f"the archive is damaged: {reason(error)}") from error
