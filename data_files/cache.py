"""Folders of files made once and kept for the next run.

They are in $XDG_CACHE_HOME/nam-jax, or ~/.cache/nam-jax, and may be deleted at
any time.
"""

import hashlib
import json
import logging
import os
import pathlib
import shutil
import tempfile
from collections.abc import Callable

from data_files.errors import DataError
from nam_jax.training import whole_files

_SEAL = "checksums.json"


def keep(name: str, make: Callable[[pathlib.Path], None]) -> pathlib.Path:
  """The folder called `name`, filled by make(folder) unless it exists.

  It gets its name once it is complete, so nothing that a killed run leaves is
  ever read. A folder that no longer matches its checksums is made again.
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
    with tempfile.TemporaryDirectory(
      prefix=f"{name}.", dir=final.parent, ignore_cleanup_errors=True
    ) as temporary:
      partial = pathlib.Path(temporary, name)
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


def _rename(partial: pathlib.Path, final: pathlib.Path) -> None:
  try:
    partial.rename(final)
  except OSError:
    # Another process has made it in the meantime.
    if not _is_whole(final):
      raise


def _is_whole(folder: pathlib.Path) -> bool:
  try:
    return json.loads((folder / _SEAL).read_text()) == _checksums(folder)
  except (OSError, ValueError):
    return False


def _checksums(folder: pathlib.Path) -> dict[str, list[int]]:
  return {
    path.name: whole_files.checksum(path)
    for path in folder.iterdir()
    if path.name != _SEAL
  }
