"""A process that stays alive for many trials, since its start takes seconds.

  python -m chaos.worker KIND FOLDER LIMIT

It reads seeds, one per line, and answers each with a line of JSON.
"""

import contextlib
import faulthandler
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from chaos.case import Case, Verdict
from chaos.lab import Lab
from chaos.processes import ROOT

# The longest that importing and writing sound files may take, in limits.
_START = 5


class Worker:
  """Starts such a process, and starts it again when it has died."""

  def __init__(self, kind: str, folder: Path, limit: float):
    self._kind, self._folder, self._limit = kind, folder, limit
    self._process = None

  def trial(self, case: Case) -> Verdict:
    """Has a trial done; its own death is blamed on the trial."""
    if self._process is None:
      self._process = self._start()
    begun = time.monotonic()
    _, _, seed = case.name.partition(":")
    answer = ""
    with contextlib.suppress(BrokenPipeError):
      print(seed, file=self._process.stdin, flush=True)
      answer = self._process.stdout.readline()
    if answer:
      return Verdict(case.name, *json.loads(answer))
    hung = time.monotonic() - begun > case.limit
    case.note("in a process that died")
    case.blame("hung" if hung else "tracebacks", f"status {self.close()}")
    return case.verdict()

  def close(self) -> int:
    """Ends the process, and returns its status."""
    process, self._process = self._process, None
    if process is None:
      return 0
    process.communicate()
    return process.returncode

  def _start(self):
    words = [self._kind, str(self._folder), str(self._limit)]
    return subprocess.Popen(
      [sys.executable, "-m", "chaos.worker", *words],
      cwd=ROOT,
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )


def main(argv: Sequence[str]) -> None:
  """Does what it reads until there is nothing left."""
  from chaos import damages, files

  kind, folder, limit = argv[0], Path(argv[1]), float(argv[2])
  answers = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)  # what else is printed must not mix with the answers
  faulthandler.dump_traceback_later(_START * limit, exit=True)
  lab = Lab(folder / "undisturbed", limit)
  trial = {"damages": damages, "files": files}[kind].make_trial(lab)
  for line in sys.stdin:
    seed = int(line)
    case = Case(kind, seed, folder / f"{kind}-{seed}", limit)
    faulthandler.dump_traceback_later(limit, exit=True)
    trial(case)
    faulthandler.cancel_dump_traceback_later()
    verdict = case.verdict()
    if not verdict.faults:
      shutil.rmtree(case.folder, ignore_errors=True)
    print(json.dumps(verdict[1:]), file=answers, flush=True)


if __name__ == "__main__":
  main(sys.argv[1:])
