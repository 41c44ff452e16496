"""Runs of the toy as processes of their own, with their output in a file."""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from chaos.case import Case

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ("-m", "chaos.train_toy")  # with the run's folder as argument
_PAUSE = 0.01  # seconds between two looks
# Limits the size of files, then becomes another program.
_LIMITED = """
import os, resource, sys
most = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
os.execv(sys.argv[2], sys.argv[2:])
"""


class Toy:
  """A process that trains the toy."""

  def __init__(
    self,
    workdir: Path,
    log: Path,
    variables: Mapping[str, str] | None = None,
    largest_file: int | None = None,
  ):
    """Starts it.

    Args:
      workdir: folder of the run.
      log: file for what it prints.
      variables: added to the environment.
      largest_file: bytes that a file of its may have; None for no limit.
    """
    self._log = log
    log.parent.mkdir(parents=True, exist_ok=True)
    program = (sys.executable, *PROGRAM, str(workdir))
    if largest_file is not None:
      program = (sys.executable, "-c", _LIMITED, str(largest_file), *program)
    with log.open("wb") as file:
      self._process = subprocess.Popen(
        program,
        cwd=ROOT,
        env={**os.environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        stdout=file,
        stderr=subprocess.STDOUT,
      )

  def output(self) -> str:
    """What it has printed so far."""
    return self._log.read_text(errors="replace")

  def has_ended(self) -> bool:
    return self._process.poll() is not None

  def await_text(self, text: str, seconds: float) -> bool:
    """Waits until it prints this; False if it ends, or takes longer."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
      if text in self.output():
        return True
      if self.has_ended():
        return False
      time.sleep(_PAUSE)
    return False

  def send(self, signal: int) -> None:
    """Sends a signal, unless it has ended."""
    self._process.send_signal(signal)

  def end(self, case: Case, allowed: Collection[int]) -> int | None:
    """Its status, one of `allowed`; None if it hangs, and is killed.

    Anything else, and a crash in what it printed, is blamed.
    """
    status = self._await_end(case.limit)
    if status is None:
      last = self.output().strip().splitlines()[-1:]
      case.blame("hung", f"after {last[0][:100] if last else 'nothing'!r}")
      self.kill()
      return None
    output = self.output()
    case.check_output(output)
    if status == 2:
      check_refusal(case, output)
    if status not in allowed:
      lines = output.strip().splitlines()[-1:] or ["nothing"]
      fault = "lost" if status == 2 else "tracebacks"
      case.blame(fault, f"status {status} after {lines[0][:200]!r}")
    return status

  def _await_end(self, seconds):
    """Its status; None if it has printed nothing for so long."""
    printed = -1
    while (size := self._log.stat().st_size) != printed:
      printed = size
      with contextlib.suppress(subprocess.TimeoutExpired):
        return self._process.wait(seconds)
    return None

  def kill(self) -> None:
    """Ends it, whatever it does."""
    self._process.kill()
    self._process.wait()


def check_refusal(case: Case, output: str) -> None:
  """A refusal is one line."""
  lines = output.splitlines()
  errors = [line for line in lines if line.startswith("error: ")]
  if len(errors) != 1 or lines[-1:] != errors:
    case.blame("tracebacks", f"status 2 and {len(errors)} lines of error")


def free_port() -> int:
  """A port where processes can find each other."""
  with socket.socket() as free:
    free.bind(("localhost", 0))
    return free.getsockname()[1]
