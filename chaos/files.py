"""A data file is mutated, then read."""

import atexit
import functools
import logging
import logging.handlers
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from chaos import mutations, readers
from chaos.case import Case
from chaos.lab import Lab
from data_files.errors import DataError

# Of an error, with the names of two files.
_LONGEST = 1200


class _Sound(NamedTuple):
  """A reader, sound files for it, and what it reads in them."""

  reader: readers.Reader
  folder: Path
  files: list[Path]
  content: str
  fingerprint: str


def make_trial(lab: Lab) -> Callable[[Case], None]:
  """What runs a trial; in a process of its own, which it changes."""
  root = lab.folder.parent
  root.mkdir(parents=True, exist_ok=True)
  folder = Path(tempfile.mkdtemp(prefix="data-", dir=root))
  atexit.register(shutil.rmtree, folder, ignore_errors=True)
  os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
  return functools.partial(_trial, functools.cache(_sound), folder)


def _sound(name, root):
  reader, folder = readers.READERS[name], root / name / "data"
  folder.mkdir(parents=True)
  reader.write(folder)
  files = sorted(path for path in folder.rglob("*") if path.is_file())
  return _Sound(reader, folder, files, *reader.read(folder))


def _trial(sounds, root, case):
  name = case.rng.choice(sorted(readers.READERS))
  sound = sounds(name, root)
  file = case.rng.choice(sound.files)
  before = file.read_bytes()
  case.note(f"{name}, {file.relative_to(sound.folder)}")
  try:
    _read(case, sound, _change(case, file, before))
    if case.verdict().faults and file.is_file():
      case.folder.mkdir(parents=True, exist_ok=True)
      shutil.copy(file, case.folder)
  finally:
    _remove(file)
    file.write_bytes(before)
    shutil.rmtree(root / "cache", ignore_errors=True)


def _change(case, file, before):
  """Mutates a file, or puts something else in its place."""
  if case.rng.random() < 0.05:
    replace = case.rng.choice(_REPLACEMENTS)
    file.unlink()
    replace(file)
    case.note(replace.__name__[1:].replace("_", " "))
    return False
  what, content, is_checked = mutations.mutate(case.rng, file.name, before)
  file.write_bytes(content)
  case.note(what)
  return is_checked and content != before


def _read(case, sound, is_checked):
  said = logging.handlers.BufferingHandler(capacity=100)
  logging.getLogger().addHandler(said)
  try:
    content, known = sound.reader.read(sound.folder)
  except DataError as error:
    _check_message(case, str(error), sound.folder)
    return
  except Exception as error:
    case.blame("tracebacks", f"{type(error).__name__}: {str(error)[:200]}")
    return
  finally:
    logging.getLogger().removeHandler(said)
  if content != sound.content:
    if is_checked and not said.buffer:
      case.blame("wrong", "other content, in spite of a checksum")
    elif known == sound.fingerprint:
      case.blame("wrong", "other content has the same fingerprint")


def _check_message(case, message, folder):
  if str(folder) not in message:
    case.blame("tracebacks", f"the error names no file: {message[:200]}")
  if not message.isprintable() or len(message) > _LONGEST:
    case.blame("tracebacks", f"the error is no short line: {message[:200]!r}")


def _nothing(path):
  del path


def _a_folder(path):
  path.mkdir()


def _a_pipe(path):
  os.mkfifo(path)


def _a_link_to_itself(path):
  path.symlink_to(path)


def _an_endless_device(path):
  path.symlink_to("/dev/zero")


_REPLACEMENTS = (
  *(_nothing, _a_folder, _a_pipe),
  *(_a_link_to_itself, _an_endless_device),
)


def _remove(path):
  if path.is_dir() and not path.is_symlink():
    path.rmdir()
  else:
    path.unlink(missing_ok=True)
