"""Calls a program within this process, as if it were one of its own."""

import contextlib
import logging
import os
import tempfile
import traceback
from collections.abc import Callable, Iterator
from typing import TextIO

from chaos import processes
from chaos.case import Case


def call(case: Case, program: Callable[[], None]) -> tuple[int, str]:
  """Status and output of the program; a crash is blamed."""
  status = 0
  with tempfile.TemporaryFile("w+", errors="replace") as file:
    with _redirected(file):
      try:
        program()
      except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0
      except Exception:
        traceback.print_exc()
        status = 1
    file.seek(0)
    output = file.read()
  case.check_output(output)
  if status == 2:
    processes.check_refusal(case, output)
  return status, output


@contextlib.contextmanager
def _redirected(file: TextIO) -> Iterator[None]:
  """Sends what Python, its log and C libraries print to a file."""
  handler = logging.StreamHandler(file)
  handler.setLevel(logging.WARNING)
  kept = [os.dup(number) for number in (1, 2)]
  with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
    try:
      for number in (1, 2):
        os.dup2(file.fileno(), number)
      logging.getLogger().addHandler(handler)
      yield
    finally:
      logging.getLogger().removeHandler(handler)
      file.flush()
      for number, old in zip((1, 2), kept, strict=True):
        os.dup2(old, number)
        os.close(old)
