"""Undisturbed runs, with which the disturbed ones are compared."""

import json
import shutil
import signal
import time
from pathlib import Path
from typing import Any, NamedTuple

from chaos import processes
from chaos.case import Case
from nam_jax.training import metrics_log, whole_files

# The toy prints these: after its imports began, and at its first step.
STARTED, CONNECTED, STEP = "started\n", "connected\n", "\nstep "
_HALF = "\nstep 24/"


class Times(NamedTuple):
  """How long an undisturbed run takes, in seconds."""

  start: float  # from the first line to the first step
  loop: float  # from there to the end


class Lab:
  """A folder with undisturbed runs.

  whole  a finished run
  half   the same, stopped halfway
  two    a finished run of two processes
  """

  def __init__(self, folder: Path, limit: float):
    self.folder, self.limit = folder, limit

  @property
  def times(self) -> Times:
    """Of the run `whole`."""
    return Times(**json.loads((self.folder / "times.json").read_text()))

  def make(self) -> None:
    """Runs `whole` and `half`; raises RuntimeError if that fails."""
    shutil.rmtree(self.folder, ignore_errors=True)
    case = self._case()
    toy = processes.Toy(self.folder / "whole", self.folder / "whole.log")
    toy.await_text(STARTED, self.limit)
    begun = time.monotonic()
    toy.await_text(STEP, self.limit)
    first = time.monotonic()
    toy.end(case, [0])
    times = Times(first - begun, time.monotonic() - first)
    half = processes.Toy(self.folder / "half", self.folder / "half.log")
    half.await_text(_HALF, self.limit)
    half.send(signal.SIGTERM)
    half.end(case, [128 + signal.SIGTERM])
    _raise_if_failed(case)
    whole_files.write_json(self.folder / "times.json", times._asdict())

  def make_two(self) -> None:
    """Runs `two`; raises RuntimeError if that fails."""
    case = self._case()
    for toy in start_two(self.folder / "two", self.folder):
      toy.end(case, [0])
    _raise_if_failed(case)

  def _case(self):
    return Case("undisturbed", 0, self.folder, self.limit)


def _raise_if_failed(case):
  verdict = case.verdict()
  if verdict.faults:
    raise RuntimeError(verdict.line())


def start_two(workdir: Path, logs: Path) -> list[processes.Toy]:
  """Two processes of one run."""
  common = {
    "JAX_COORDINATOR_ADDRESS": f"localhost:{processes.free_port()}",
    "JAX_NUM_PROCESSES": "2",
  }
  return [
    processes.Toy(
      workdir, logs / f"process{i}.log", common | {"JAX_PROCESS_ID": str(i)}
    )
    for i in range(2)
  ]


def results(workdir: Path) -> dict[str, Any]:
  """What a run has found, without the names of files, which are no results."""
  found = json.loads((workdir / "results.json").read_text())
  found.get("fingerprint", {}).pop("files", None)
  return found


def rows(workdir: Path) -> list[dict[str, Any]]:
  """The lines of metrics.jsonl without the times."""
  lines = (workdir / "metrics.jsonl").read_text().splitlines()
  times = metrics_log.TIME_FIELDS
  return [
    {
      name: value
      for name, value in json.loads(line).items()
      if name not in times
    }
    for line in lines
  ]


def compare(case: Case, workdir: Path, reference: Path) -> None:
  """Blames a finished run whose numbers are not those of another."""
  if not (workdir / "results.json").is_file():
    case.blame("lost", "it has finished without results")
    return
  ours, theirs = results(workdir), results(reference)
  if ours != theirs:
    names = [n for n in ours | theirs if ours.get(n) != theirs.get(n)]
    case.blame("wrong", f"results.json differs in {', '.join(names)}")
  compare_rows(case, workdir, reference)


def compare_rows(case: Case, workdir: Path, reference: Path) -> None:
  """Blames metrics that are lost or different."""
  ours, theirs = rows(workdir), rows(reference)
  if len(ours) < len(theirs):
    case.blame("lost", f"{len(theirs) - len(ours)} rows of metrics.jsonl")
  elif ours != theirs:
    case.blame("wrong", "metrics.jsonl differs")


def saved_step(workdir: Path) -> int:
  """The newest checkpoint that was completed; 0 if there is none."""
  seals = (workdir / "checkpoints").glob("*/seal.json")
  return max((int(seal.parent.name) for seal in seals), default=0)


def continue_and_compare(
  case: Case, workdir: Path, reference: Path, least: int
) -> None:
  """Runs the same command again; it must go on from `least` or later."""
  toy = processes.Toy(workdir, case.folder / "again.log")
  if toy.end(case, [0]) == 0:
    check_start(case, toy.output(), least)
    compare(case, workdir, reference)


def check_start(case: Case, output: str, least: int) -> None:
  """Blames a run that repeats steps which were saved."""
  _, found, rest = output.partition(" after step ")
  start = int(rest.partition("\n")[0]) if found else 0
  if start < least:
    case.blame("lost", f"continued from step {start}, saved was {least}")
