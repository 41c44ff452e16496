"""Tables of results next to the paper's, and the runs that fill them."""

import functools
import itertools
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent import futures
from pathlib import Path
from typing import Any, NamedTuple

from command_line import script, tool

_ROOT = Path(__file__).resolve().parents[1]


class Table(NamedTuple):
  """The runs of a table, and what a cell shows of them."""

  script: str  # what trains a cell
  folder: str  # of all runs, by default
  names: Mapping[str, Sequence[str]]  # all that there are, as in `script`
  kind: str  # what a row is: "model"
  rows: Sequence[str]  # by default
  tasks: Sequence[str]  # of the columns, by default
  config: Callable[[str, str], str]  # task, row -> config file and argument
  ours: Callable[[list[dict[str, Any]]], str]  # results.json of all seeds
  papers: Callable[[str, str], str]  # task, row
  read_tasks: Sequence[str] = ()  # those that need --data_dir


class Run(NamedTuple):
  """One training: a folder and the arguments that make it."""

  workdir: Path
  arguments: tuple[str, ...]

  def results(self) -> dict[str, Any] | None:
    """The content of results.json; None if the run is not finished."""
    file = self.workdir / "results.json"
    return json.loads(file.read_text()) if file.exists() else None


def main(table: Table, argv: Sequence[str], usage: str) -> int:
  """Runs what is missing and prints the table; returns 1 on failure."""
  options, extra = _make_parser(table, usage).parse_known_args(argv)
  rows = getattr(options, f"{table.kind}s")
  runs = {
    (seed, task, row): _run(table, options, seed, task, row, extra)
    for seed, task, row in itertools.product(options.seeds, options.tasks, rows)
  }
  failed = 0
  if not options.show:
    with futures.ThreadPoolExecutor(options.jobs) as pool:
      train = functools.partial(_train, _ROOT / table.script)
      failed = sum(pool.map(train, runs.values()))
  texts = [[table.kind, *options.tasks]]
  for row in rows:
    texts.append([row])
    for task in options.tasks:
      found = [runs[seed, task, row].results() for seed in options.seeds]
      text = table.ours([f for f in found if f]) if any(found) else "-"
      if any(found) and len(found) > 1:
        text += f" x{len(found) - found.count(None)}"
      papers = table.papers(task, row)
      texts[-1].append(f"{text} ({papers})" if papers else text)
  print(as_text(texts, options.markdown))
  return int(failed > 0)


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


def _make_parser(table, usage):
  parser = tool.make_parser(script.with_names(usage, table.names))
  add = parser.add_argument
  add("--folder", type=Path, default=Path(table.folder), help="of all runs")
  add("--tasks", type=_names, default=table.tasks, help="of the columns")
  add(f"--{table.kind}s", type=_names, default=table.rows, help="of the rows")
  add("--preset", default=table.names["presets"][0], help="of all runs")
  add("--seeds", "--seed", type=_numbers, default=[0], help="0,1,2 for a mean")
  add("--jobs", type=int, default=1, help="runs at the same time")
  add("--show", action="store_true", help="run nothing, print the table")
  add("--markdown", action="store_true", help="print a Markdown table")
  if table.read_tasks:
    add("--data_dir", type=Path, help="folder with the data of all tasks")
  return parser


def _names(text):
  return text.split(",")


def _numbers(text):
  return [int(number) for number in text.split(",")]


def _run(table, options, seed, task, row, extra):
  workdir = options.folder / f"{task}-{row}-{options.preset}-{seed}"
  arguments = [
    f"--config={_ROOT / table.config(task, row)},{options.preset}",
    f"--config.seed={seed}",
    f"--workdir={workdir}",
    *extra,
  ]
  if task in table.read_tasks and options.data_dir:
    arguments.append(f"--data_dir={options.data_dir}")
  return Run(workdir, tuple(arguments))


def _train(program, run):
  """Runs it with a log next to its folder; returns the exit status."""
  if run.results():
    return 0
  run.workdir.parent.mkdir(parents=True, exist_ok=True)
  log = run.workdir.with_name(run.workdir.name + ".log")
  print(f"{run.workdir.name} started, see {log}", flush=True)
  with log.open("a") as file:
    status = subprocess.run(
      [sys.executable, program, *run.arguments], stdout=file, stderr=file
    ).returncode
  print(f"{run.workdir.name} ended with status {status}", flush=True)
  return status
