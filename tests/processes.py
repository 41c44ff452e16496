"""Separate Python processes, for tests that set environment variables."""

import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tests import project_tree


def start(
  arguments: Sequence[str],
  variables: Mapping[str, str],
  stderr: int = subprocess.STDOUT,
) -> subprocess.Popen:
  """Starts what follows `python`, with the checkout importable."""
  return subprocess.Popen(
    [sys.executable, *arguments],
    env={**os.environ, "PYTHONPATH": str(project_tree.ROOT), **variables},
    stdout=subprocess.PIPE,
    stderr=stderr,
    text=True,
  )


def finish(
  processes: Sequence[subprocess.Popen], statuses: Sequence[int] = ()
) -> list[str]:
  """Their outputs; kills them (JAX catches SIGTERM) if they hang.

  Args:
    processes: from `start`.
    statuses: with which they must end; by default 0.
  """
  try:
    outputs = [process.communicate(timeout=100)[0] for process in processes]
  finally:
    for process in processes:
      process.kill()
  expected = statuses or [0] * len(processes)
  assert [p.returncode for p in processes] == list(expected), outputs
  return outputs


def free_port() -> int:
  """A port where processes can find each other."""
  with socket.socket() as free:
    free.bind(("localhost", 0))
    return free.getsockname()[1]
