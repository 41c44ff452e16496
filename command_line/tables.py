"""Tables of results, and the runs that fill them."""

import argparse
import functools
import json
import queue
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any, NamedTuple

from command_line import machine, script, tool
from nam_jax import spelling

_ROOT = Path(__file__).resolve().parents[1]


class Table(NamedTuple):
  """The runs of a table."""

  script: str  # what trains a cell
  folder: str  # of all runs, by default
  names: Mapping[str, Iterable[str]]  # all that there are, as in `script`
  kind: str  # what a row is: "model"
  rows: Sequence[str]  # by default
  tasks: Sequence[str]  # by default; none: those that have data
  config: Callable[[str, str], str]  # task, row -> config file and argument
  read_tasks: Sequence[str] = ()  # those that need --data_dir


class Run(NamedTuple):
  """One process: a folder, the arguments that make it, and what it writes."""

  workdir: Path
  arguments: tuple[str, ...]
  product: str = "results.json"

  def results(self) -> dict[str, Any] | None:
    """The content of the product; None if the run is not finished."""
    file = self.workdir / self.product
    return json.loads(file.read_text()) if file.exists() else None


def make_parser(table: Table, usage: str) -> argparse.ArgumentParser:
  """The options that all tables have."""
  parser = tool.make_parser(script.with_names(usage, table.names))
  add = parser.add_argument
  add("--folder", type=Path, default=Path(table.folder), help="of all runs")
  tasks = "what to learn" + " (default: what has data)" * (not table.tasks)
  add("--tasks", type=_names, default=table.tasks or None, help=tasks)
  add(f"--{table.kind}s", type=_names, default=table.rows, help="of the rows")
  preset, *_ = table.names["presets"]
  add("--preset", default=preset, help="of all runs")
  add("--seeds", "--seed", type=numbers, default=[0], help="0,1,2 for a mean")
  add(
    "--jobs",
    type=int,
    default=1,
    help="runs at the same time; each has its own equal share of the cores if"
    " the system can pin them, so that times compare",
  )
  add("--show", action="store_true", help="run nothing, print the table")
  add("--markdown", action="store_true", help="print a Markdown table")
  if table.read_tasks:
    add("--data_dir", type=Path, help="folder with the data of all tasks")
  return parser


def parse(
  table: Table, parser: argparse.ArgumentParser, argv: Sequence[str]
) -> argparse.Namespace:
  """The options; `rows` has those of the table, `extra` goes to the script."""
  options, options.extra = parser.parse_known_args(argv)
  options.rows = getattr(options, f"{table.kind}s")
  for kind, given in (("task", options.tasks), (table.kind, options.rows)):
    for name in given or ():
      if name not in (known := table.names[f"{kind}s"]):
        parser.error(spelling.unknown(kind, name, known))
  if options.jobs < 1:
    parser.error(f"--jobs={options.jobs} must be at least 1")
  return options


def make_run(
  table: Table,
  options: argparse.Namespace,
  task: str,
  row: str,
  seed: int,
  effort: str = "",
  more: Sequence[str] = (),
) -> Run:
  """The run of one cell and seed.

  Args:
    table: the runs of the table.
    options: from `parse`.
    task: one of the table's.
    row: one of the table's.
    seed: of the run.
    effort: becomes part of the folder's name.
    more: arguments, which those in options.extra override.
  """
  words = [task, row, options.preset, effort, str(seed)]
  workdir = options.folder / "-".join(word for word in words if word)
  arguments = [
    f"--config={_ROOT / table.config(task, row)},{options.preset}",
    f"--config.seed={seed}",
    f"--workdir={workdir}",
    *more,
    *options.extra,
  ]
  if task in table.read_tasks and options.data_dir:
    arguments.append(f"--data_dir={options.data_dir}")
  return Run(workdir, tuple(arguments))


def complete(
  table: Table,
  runs: Iterable[Run],
  jobs: int,
  after: Callable[[], object] = lambda: None,
) -> int:
  """Runs what is not finished, `jobs` at a time; returns how many failed.

  After each of them, in turn, it calls `after`.
  """
  cores = machine.cores()
  share = len(cores) // jobs if jobs > 1 else 0
  shares = queue.SimpleQueue()
  for i in range(jobs):
    shares.put(cores[i * share : (i + 1) * share])
  with futures.ThreadPoolExecutor(
    jobs, initializer=lambda: machine.pin(shares.get())
  ) as pool:
    start, failed = functools.partial(_start, _ROOT / table.script), 0
    for status in pool.map(start, runs):
      failed += status != 0
      after()
  return failed


def as_text(rows: Sequence[Sequence[str]], markdown: bool) -> str:
  """The rows as a plain or a Markdown table."""
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  padded = [
    [f"{text:{width}}" for text, width in zip(row, widths, strict=True)]
    for row in rows
  ]
  if not markdown:
    return "\n".join("  ".join(row).rstrip() for row in padded)
  padded.insert(1, ["-" * width for width in widths])
  return "\n".join(f"| {' | '.join(row)} |" for row in padded)


def numbers(text: str) -> list[int]:
  """Parses "0,1,2"."""
  return [int(number) for number in text.split(",")]


def _names(text):
  return text.split(",")


def _start(program, run):
  """Runs it with a log next to its folder; returns the exit status."""
  if run.results():
    return 0
  run.workdir.parent.mkdir(parents=True, exist_ok=True)
  log = run.workdir.with_name(run.workdir.name + ".log")
  print(f"{run.workdir.name} started, see {log}", flush=True)
  with log.open("a") as file:
    # A process starts on the cores of the thread that starts it.
    status = subprocess.run(
      [sys.executable, program, *run.arguments], stdout=file, stderr=file
    ).returncode
  print(f"{run.workdir.name} ended with status {status}", flush=True)
  return status
