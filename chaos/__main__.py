"""Tries to spoil runs and data; nothing must be lost, wrong, hung or crash.

  make chaos
  make chaos ARGS="--kills=100 --damages=200 --files=20000"
  python -m chaos --only=kills:17,files:1203

Each trial has a seed, which decides every choice; --only repeats some trials,
and the folder of one that failed is kept. Moments are measured from lines that
a run prints, so on another machine they differ a little.

kills    a run gets SIGKILL, SIGTERM or SIGINT at some moment
damages  a file in a run's folder is damaged or deleted
disks    the disk fills up during a run
doubles  two runs start in one folder
stops    one of two processes of a run, or both, get a signal
files    a data file is mutated, or something else is in its place

After the first five, the same command must continue the run, and end with the
numbers of an undisturbed one, to the last bit. A table counts what was found,
and the exit status is 1 if there is any of it:

lost        a run does not continue, or repeats steps that it had saved
wrong       other numbers without a word about it
hung        nothing happens for more than --limit seconds
tracebacks  a crash, or an error that is not one line
"""

import argparse
import itertools
import shutil
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from pathlib import Path

import jax

from chaos import disks, doubles, kills, stops
from chaos.case import FAULTS, Case, Verdict
from chaos.lab import Lab
from chaos.worker import Worker
from command_line import machine, record, tables, tool

# How many trials of each kind there are by default: minutes on two cores.
COUNTS = {
  "kills": 20,
  "damages": 40,
  "disks": 4,
  "doubles": 2,
  "stops": 2,
  "files": 2000,
}
# The others need a process that lives on.
_HERE = {
  "kills": kills.trial,
  "disks": disks.trial,
  "doubles": doubles.trial,
  "stops": stops.trial,
}
_MANY = 500  # trials; more of a kind are not shown one by one


def make_parser() -> argparse.ArgumentParser:
  """The options."""
  parser = tool.make_parser(__doc__, "python -m chaos")
  add = parser.add_argument
  for kind, count in COUNTS.items():
    add(f"--{kind}", type=_count, default=count, help="number of trials")
  add("--seed", type=_count, default=0, help="of the first trial of each kind")
  add("--only", type=_trials, help="only these trials: kills:17,files:1203")
  add("--jobs", type=_count, default=2, help="trials at the same time")
  add("--limit", type=float, default=60.0, help="seconds until it hangs")
  add("--folder", type=Path, default=Path("runs/chaos"), help="to work in")
  add(
    "--json",
    type=record.table_file,
    help="file of tables to add this one to",
  )
  return parser


def main(argv: Sequence[str]) -> int:
  """Runs the trials and prints a table; returns 1 if any failed."""
  parser = make_parser()
  options = parser.parse_args(argv)
  folder = options.folder.resolve()
  trials = options.only or {
    kind: range(options.seed, options.seed + getattr(options, kind))
    for kind in COUNTS
  }
  trials = {kind: seeds for kind, seeds in trials.items() if seeds}
  try:
    verdicts = run(trials, folder, options.limit, max(1, options.jobs))
  except RuntimeError as error:
    parser.error(str(error))
  rows = counted(verdicts)
  columns = list(rows[0]) if rows else []
  print(tables.as_text([columns, *(list(row.values()) for row in rows)], False))
  if options.json:
    _record(options, argv, columns, rows)
  failed = sum(bool(verdict.faults) for verdict in verdicts)
  if failed:
    print(f"{failed} of {len(verdicts)} trials failed; see {folder}")
  return int(failed > 0)


def run(
  trials: Mapping[str, Sequence[int]], folder: Path, limit: float, jobs: int
) -> list[Verdict]:
  """Runs trials, given by their seeds, and prints a line for each."""
  for kind in COUNTS:
    for old in folder.glob(f"{kind}-[0-9]*"):
      disks.unmount_left(old)
      shutil.rmtree(old)
  lab = Lab(folder / "undisturbed", limit)
  if trials.keys() - {"files"}:
    print("undisturbed runs, to compare with", flush=True)
    lab.make()
  if "stops" in trials:
    lab.make_two()
  if "disks" in trials:
    print(f"a small disk is {disks.stand_in()}", flush=True)
  verdicts = []
  for kind, seeds in trials.items():
    quiet = len(seeds) > _MANY
    for done, verdict in enumerate(_run_kind(kind, seeds, lab, jobs), 1):
      verdicts.append(verdict)
      if not quiet or verdict.faults:
        print(verdict.line(), flush=True)
      if quiet and done % _MANY == 0:
        print(f"{kind}: seeds up to {seeds[done - 1]} are done", flush=True)
  return verdicts


def _run_kind(kind, seeds, lab, jobs) -> Iterator[Verdict]:
  """The verdicts in the order of the seeds."""
  folder, local, workers = lab.folder.parent, threading.local(), []

  def here(case):
    case.folder.mkdir(parents=True)
    _HERE[kind](case, lab)
    verdict = case.verdict()
    if not verdict.faults:
      shutil.rmtree(case.folder)
    return verdict

  def in_worker(case):
    if not hasattr(local, "worker"):
      local.worker = Worker(kind, folder, lab.limit)
      workers.append(local.worker)
    return local.worker.trial(case)

  def trial(seed):
    case = Case(kind, seed, folder / f"{kind}-{seed}", lab.limit)
    return here(case) if kind in _HERE else in_worker(case)

  try:
    with futures.ThreadPoolExecutor(jobs) as pool:
      yield from pool.map(trial, seeds)
  finally:
    for worker in workers:
      worker.close()


def counted(verdicts: Sequence[Verdict]) -> list[dict[str, str]]:
  """The rows of the table: each kind, its trials, and its faults."""
  rows = []
  for kind, found in itertools.groupby(verdicts, lambda v: v.kind):
    found = list(found)
    faults = Counter(fault for verdict in found for fault in verdict.faults)
    rows.append(
      {
        "kind": kind,
        "trials": str(len(found)),
        **{fault: str(faults[fault]) for fault in FAULTS},
      }
    )
  return rows


def _record(options, argv, columns, rows) -> None:
  words = [w for w in argv if not w.startswith(("--json", "--folder"))]
  made = {"machine": machine.about(), "versions": {"jax": jax.__version__}}
  table = {
    "columns": columns,
    "command": " ".join(["python -m chaos", *words]),
    **record.when(),
    "seeds": f"from {options.seed}",
    "machine": record.machines([made]),
    "differs": f"A small disk is {disks.stand_in()}. Hung: more than"
    f" {options.limit:g} s.",
    "rows": rows,
  }
  record.write_table(options.json, "chaos", table)


def _count(text: str) -> int:
  if not text.isdecimal():
    raise argparse.ArgumentTypeError(f"{text!r} is not a number of trials")
  return int(text)


def _trials(text: str) -> dict[str, list[int]]:
  """Parses "kills:17,files:1203"."""
  found: dict[str, list[int]] = {}
  for word in text.split(","):
    kind, _, seed = word.partition(":")
    if kind not in COUNTS or not seed.isdecimal():
      raise argparse.ArgumentTypeError(
        f"{word!r} is not kind:seed, with a kind of {', '.join(COUNTS)}"
      )
    found.setdefault(kind, []).append(int(seed))
  return found


if __name__ == "__main__":
  # A shell's background jobs ignore Ctrl-C, and so would the runs.
  signal.signal(signal.SIGINT, signal.default_int_handler)
  sys.exit(main(sys.argv[1:]))
