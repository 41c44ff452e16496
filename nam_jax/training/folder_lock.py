"""One run at a time in a folder.

The lock is the operating system's, on the file lock.json: it ends with the
process, however that ends. The file itself stays, and says which process had
the lock last.
"""

import contextlib
import datetime
import json
import logging
import os
import socket
from collections.abc import Generator
from pathlib import Path

from nam_jax.training.errors import UserError

try:
  import fcntl
except ImportError:  # on Windows
  fcntl = None

_FILE = "lock.json"


@contextlib.contextmanager
def held(folder: Path) -> Generator[None]:
  """Locks a folder; raises `UserError` if another run has locked it.

  Where files cannot be locked, one line says so and the run goes on.
  """
  # Without a buffer: what a full disk does not take is not tried again.
  with open(folder / _FILE, "a+b", buffering=0) as file:
    try:
      _lock(file)
    except (BlockingIOError, PermissionError) as error:
      raise UserError(
        f"{folder} is in use by {_holder(file)}; wait until it has ended, or"
        " choose another workdir"
      ) from error
    except OSError as error:
      _warn(
        f"cannot lock {folder} ({error.strerror}): make sure that no other run"
        " uses it"
      )
    _sign(file)
    yield


def _lock(file):
  if fcntl is None:
    raise OSError(0, "this system has no file locks")
  fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sign(file):
  """Says who holds the lock; a full disk may prevent it."""
  now = datetime.datetime.now().astimezone()
  content = {
    "host": socket.gethostname(),
    "process": os.getpid(),
    "started": now.isoformat(" ", "seconds"),
  }
  try:
    file.truncate(0)
    file.write(json.dumps(content).encode() + b"\n")
  except OSError:
    _warn(f"cannot write {file.name}")


def _holder(file):
  file.seek(0)
  try:
    content = json.loads(file.read())
    return (
      f"process {content['process']} on {content['host']}, started"
      f" {content['started']}"
    )
  except (ValueError, LookupError, TypeError):
    return "another process"


def _warn(message):
  logging.getLogger(__name__).warning(message)
