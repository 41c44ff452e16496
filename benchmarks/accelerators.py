"""Compiles every form and layer for GPUs and a TPU that need not be here.

  make accelerators
  python -m benchmarks.accelerators --targets=H100 --only=memory
  python -m benchmarks.accelerators --json=docs/results.json

Prints what the compiled programs would execute: the trips of their loops (in
total for a nested one), operations (those in a loop times its trips), temporary
memory, and the time that the compiler estimates. Nothing is executed. Needs
jax[cuda12] and jax[tpu], which `make accelerators` installs into a folder of
their own (6 GB). A target that is missing is named in one line.
"""

import collections
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax

from benchmarks import flags, programs, targets
from command_line import record, tables, tool

_ROOT = Path(__file__).resolve().parents[1]
_HEADER = ("target", "program", "task", "loops", "operations")
_HEADER += ("temporary MiB", "estimate us")


class Figures(NamedTuple):
  """A compiled program; `error` says why there is none."""

  target: str
  program: str
  task: str
  loops: tuple[int, ...] = ()
  operations: int | None = None
  temporary_mib: float | None = None
  microseconds: float | None = None
  error: str | None = None

  def cell(self, field: str) -> str:
    """The figure as text."""
    value = getattr(self, field)
    if value is None or self.error:
      return "-"
    if field != "loops":
      return _grouped(value)
    loops = [
      f"{count} x {trips:,}" if count > 1 else f"{trips:,}"
      for trips, count in collections.Counter(value).items()
    ]
    return " + ".join(loops) or "none"


def _grouped(value: float) -> str:
  is_small = isinstance(value, float) and value < 10
  return f"{value:.1f}" if is_small else f"{value:,.0f}"


def compile_for(target: str, chosen: Sequence[str]) -> Iterator[Figures]:
  """Compiles in processes of their own: a new one after every crash.

  Raises:
    OSError: if the target is not available; the text says why.
  """
  jobs = list(itertools.product(chosen, programs.TASKS))
  while jobs:
    with tempfile.TemporaryFile("w+") as log:
      with _start(target, jobs, log) as process:
        for line in process.stdout or ():
          yield Figures(target, **json.loads(line))
          jobs.pop(0)
      log.seek(0)
      lines = log.read().strip().splitlines() or ["no message"]
    if process.returncode > 0:
      raise OSError(lines[-1])
    if process.returncode < 0:
      fatal = [line for line in lines if re.match(r"F\d{4} ", line)]
      why = f"the compiler crashed: {(fatal or lines)[0]}"
      yield Figures(target, *jobs.pop(0), error=why)


def _start(target, jobs, log):
  return subprocess.Popen(
    [sys.executable, "-m", "benchmarks.targets", target, json.dumps(jobs)],
    cwd=_ROOT,
    env=targets.environment(target, os.environ),
    stdout=subprocess.PIPE,
    stderr=log,
    text=True,
  )


def as_text(found: Sequence[Figures]) -> str:
  """A line for each program and task."""
  rows = [_HEADER]
  for f in found:
    cells = [f.cell(field) for field in Figures._fields[3:7]]
    rows.append((f.target, f.program, f.task, *cells))
  return tables.as_text(rows, markdown=False)


def as_table(found: Sequence[Figures]) -> dict[str, Any]:
  """A table of docs/results.json; a cell is forward / gradient."""
  by_key = {f[:3]: f for f in found}
  columns = {
    "trips of loops": ("H100", "loops"),
    "operations, A100": ("A100", "operations"),
    "operations, H100": ("H100", "operations"),
    "operations, v5e": ("v5e", "operations"),
    "MiB, H100": ("H100", "temporary_mib"),
    "µs, H100": ("H100", "microseconds"),
    "µs, v5e": ("v5e", "microseconds"),
  }
  rows = []
  for name in dict.fromkeys(f.program for f in found):
    row = {"compiled": f"`{name}`"}
    for column, (target, field) in columns.items():
      row[column] = " / ".join(
        by_key[target, name, task].cell(field) for task in programs.TASKS
      )
    rows.append(row)
  return {
    "columns": ["compiled", *columns],
    "command": "make accelerators ARGS=--json=docs/results.json",
    "seeds": "none",
    "machine": f"compiled on a CPU, JAX {jax.__version__}, float32",
    **record.when(),
    "differs": _NOTE,
    "rows": rows,
  }


_NOTE = (
  "Each cell has two figures: the outputs alone, and outputs with all"
  " gradients. Nothing was executed, and the times are XLA's estimates; they"
  " leave out the gaps between operations. XLA makes no estimates for the A100."
  " The forms and attentions have 2 x 2,048 tokens and 4 heads of width 64, the"
  " machines (from LSAM on) 128 x 39 tokens of width 64. The sharded forms are"
  " one of four devices."
)


def main(argv: Sequence[str]) -> int:
  """Compiles and prints; returns 1 if anything was not compiled."""
  parser = tool.make_parser(__doc__, "python -m benchmarks.accelerators")
  add = parser.add_argument
  add(
    "--targets",
    type=flags.names(targets.TARGETS),
    default=tuple(targets.TARGETS),
    help=f"some of {', '.join(targets.TARGETS)} (default: all)",
  )
  add("--only", default="", help="programs whose name contains this text")
  add("--json", type=record.table_file, help="file of tables to add to")
  options = parser.parse_args(argv)
  chosen = [name for name in programs.PROGRAMS if options.only in name]
  if not chosen:
    known = ", ".join(programs.PROGRAMS)
    parser.error(f"no program contains {options.only!r}; there are {known}")
  found, missing = [], []
  for target in options.targets:
    try:
      for figures in compile_for(target, chosen):
        found.append(figures)
        print(f"{target}: {figures.program}, {figures.task}", file=sys.stderr)
    except OSError as error:
      missing.append(target)
      print(f"{target} is not available here: {error}"[:300])
  failed = [f for f in found if f.error]
  for f in failed:
    line = f"{f.program}, {f.task}, not compiled for {f.target}: {f.error}"
    print(line[:300])
  if found:
    print(as_text(found))
  if options.json:
    if missing or options.only or len(options.targets) < len(targets.TARGETS):
      parser.error("--json needs all programs and targets")
    record.write_table(options.json, "accelerators", as_table(found))
    print(f"written to {options.json}; `make pages` updates the pages")
  return int(bool(missing or failed))


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
