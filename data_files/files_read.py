"""Which files data come from, for the fingerprint of a run."""

import contextlib
import contextvars
import os
import pathlib
from collections.abc import Iterator, Mapping

from data_files.errors import DataError

# More files than this are only counted.
_LISTED = 20

_sizes: contextvars.ContextVar[dict[str, int] | None] = contextvars.ContextVar(
  "sizes", default=None
)


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, int]]:
  """Collects path and size of every file that is noted inside."""
  sizes = {}
  token = _sizes.set(sizes)
  try:
    yield sizes
  finally:
    _sizes.reset(token)


def note(path: pathlib.Path) -> None:
  """Adds a file to those that are recorded; readers call it."""
  sizes = _sizes.get()
  if sizes is not None and path.is_file():
    sizes[os.path.abspath(path)] = path.stat().st_size


def stamp(path: pathlib.Path) -> tuple[str, int, int, int]:
  """Notes a file; the result changes whenever the file does.

  The last number is the time of the last change, which no program can set.
  """
  try:
    state = path.stat()
  except OSError as error:
    raise DataError(f"{path}: {error.strerror}") from error
  name, sizes = os.path.abspath(path), _sizes.get()
  if sizes is not None:
    sizes[name] = state.st_size
  return name, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def named(sizes: Mapping[str, int]) -> dict[str, int]:
  """The sizes by a name that does not depend on where the files are."""
  if len(sizes) > _LISTED:
    return {f"{len(sizes)} files": sum(sizes.values())}
  folder = os.path.commonpath(map(os.path.dirname, sizes)) if sizes else ""
  return {
    os.path.relpath(path, folder): size for path, size in sorted(sizes.items())
  }
