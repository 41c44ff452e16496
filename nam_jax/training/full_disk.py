"""A full disk needs only one line, which names the last good checkpoint."""

import contextlib
import errno
import os
from collections.abc import Generator

from nam_jax.training.errors import UserError


@contextlib.contextmanager
def explained(workdir: str | os.PathLike) -> Generator[None]:
  """Raises `UserError` if the disk of the run's folder is full in here."""
  try:
    yield
  except UserError:
    raise
  except Exception as error:
    if not (why := reason(error)):
      raise
    from nam_jax.training import checkpoint  # slow to import

    step = checkpoint.newest_step(workdir)
    saved = "" if step is None else f" last good checkpoint: step {step};"
    raise UserError(
      f"cannot write to {workdir}: {why};{saved} make room, then run the same"
      " command to continue"
    ) from error


def reason(error: Exception) -> str | None:
  """What the system says of a full disk, or of files that must be small."""
  number = getattr(error, "errno", None)
  for full in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
    # Orbax passes on only the words.
    if number == full or os.strerror(full) in str(error):
      return os.strerror(full)
  return None
