"""Folders of files made once and kept for the next run.

They are in $XDG_CACHE_HOME/nam-jax, or ~/.cache/nam-jax, and may be deleted at
any time.
"""

import contextlib
import hashlib
import json
import logging
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Iterator

from data_files.errors import DataError
from nam_jax.training import whole_files

try:
  import fcntl
except ImportError:  # on Windows
  fcntl = None

_SEAL = "checksums.json"


def keep(name: str, make: Callable[[pathlib.Path], None]) -> pathlib.Path:
  """The folder called `name`, filled by make(folder) unless it exists.

  It gets its name once it is complete, so nothing that a killed run leaves is
  ever read, and the next one removes it. A folder that no longer matches its
  checksums is made again.
  """
  final = _root() / name
  if _is_whole(final):
    return final
  log = logging.getLogger(__name__)
  try:
    if final.exists():
      log.warning("%s is damaged and will be made again", final)
      shutil.rmtree(final)
    log.info("making %s", final)
    final.parent.mkdir(parents=True, exist_ok=True)
    with _workshop(final) as temporary:
      partial = temporary / name
      partial.mkdir()
      make(partial)
      whole_files.write_json(partial / _SEAL, _checksums(partial))
      _rename(partial, final)
  except OSError as error:
    raise DataError(
      f"cannot write {final}: {error}; set XDG_CACHE_HOME to another folder"
    ) from error
  return final


def digest(*state: object) -> str:
  """A short name for what a folder is made from, such as paths and times."""
  return hashlib.sha256(repr(state).encode()).hexdigest()[:16]


def _root() -> pathlib.Path:
  chosen = pathlib.Path(os.environ.get("XDG_CACHE_HOME", ""))
  base = chosen if chosen.is_absolute() else pathlib.Path.home() / ".cache"
  return base / "nam-jax"


@contextlib.contextmanager
def _workshop(final: pathlib.Path) -> Iterator[pathlib.Path]:
  """A temporary folder, locked as long as this process uses it."""
  root = final.parent
  with contextlib.ExitStack() as stack:
    with _locked(root, wait=True):
      _remove_leftovers(root)
      temporary = tempfile.TemporaryDirectory(
        prefix=f"{final.name}.", dir=root, ignore_cleanup_errors=True
      )
      folder = stack.enter_context(temporary)
      stack.enter_context(_locked(folder, wait=False))
    yield pathlib.Path(folder)


def _remove_leftovers(root: pathlib.Path) -> None:
  """Removes the temporary folders of processes that are no more."""
  for folder in root.glob("*.????????"):
    with contextlib.suppress(OSError), _locked(folder, wait=False) as is_left:
      if is_left:
        shutil.rmtree(folder)


@contextlib.contextmanager
def _locked(folder: str | pathlib.Path, wait: bool) -> Iterator[bool]:
  """Whether the folder's lock is ours: some systems and drives have none.

  The system releases it when the process ends, in whatever way.
  """
  if fcntl is None:
    yield False
    return
  descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
  try:
    try:
      fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
      is_ours = True
    except OSError:
      is_ours = False
    yield is_ours
  finally:
    os.close(descriptor)


def _rename(partial: pathlib.Path, final: pathlib.Path) -> None:
  try:
    partial.rename(final)
  except OSError:
    # Another process has made it in the meantime.
    if not _is_whole(final):
      raise


def _is_whole(folder: pathlib.Path) -> bool:
  try:
    if not all(path.is_file() for path in folder.iterdir()):
      return False
    return json.loads((folder / _SEAL).read_text()) == _checksums(folder)
  except (OSError, ValueError):
    return False


def _checksums(folder: pathlib.Path) -> dict[str, list[int]]:
  return {
    path.name: whole_files.checksum(path)
    for path in folder.iterdir()
    if path.name != _SEAL
  }
