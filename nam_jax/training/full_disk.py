"""A full disk needs only one line, which names the last good checkpoint."""

import contextlib
import errno
import logging
import os
import sys
import warnings
from collections.abc import Generator

from nam_jax.training.errors import UserError


@contextlib.contextmanager
def explained(workdir: str | os.PathLike) -> Generator[None]:
  """Raises `UserError` if the disk of the run's folder is full in here."""
  with contextlib.ExitStack() as stack:
    _quiet_orbax(stack)
    try:
      yield
    except UserError:
      raise
    except Exception as error:
      if not (why := reason(error)):
        raise
      stack.pop_all()  # its threads may still be at it
      from nam_jax.training import checkpoint  # slow to import

      step = checkpoint.newest_step(workdir)
      saved = "" if step is None else f" last good checkpoint: step {step};"
      raise UserError(
        f"cannot write to {workdir}: {why};{saved} make room, then run the same"
        " command to continue"
      ) from error


def _quiet_orbax(stack):
  """Hides what its threads print of a full disk: several tracebacks each."""
  logger, hook = logging.getLogger("absl"), sys.unraisablehook

  def print_other(found):
    if str(found.exc_value) != "Event loop is closed":  # a thread was late
      hook(found)

  logger.addFilter(_is_other)
  stack.callback(logger.removeFilter, _is_other)
  sys.unraisablehook = print_other
  stack.callback(setattr, sys, "unraisablehook", hook)
  stack.enter_context(warnings.catch_warnings())
  warnings.filterwarnings("ignore", "coroutine .* was never awaited")


def _is_other(record):
  """Whether a message is about something else than a full disk."""
  error = record.exc_info[1] if record.exc_info else None
  return not (isinstance(error, Exception) and reason(error))


def reason(error: Exception) -> str | None:
  """What the system says of a full disk, or of files that must be small."""
  number = getattr(error, "errno", None)
  for full in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
    # Orbax passes on only the words.
    if number == full or os.strerror(full) in str(error):
      return os.strerror(full)
  return None
