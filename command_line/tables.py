"""Tables of results: the runs that make them, and their text."""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent import futures
from pathlib import Path
from typing import Any, NamedTuple


class Run(NamedTuple):
  """One training: a folder and the arguments that make it."""

  workdir: Path
  arguments: tuple[str, ...]

  def results(self) -> dict[str, Any] | None:
    """What it left behind, None if it is not finished."""
    file = self.workdir / "results.json"
    return json.loads(file.read_text()) if file.exists() else None


def names(text: str) -> list[str]:
  """The parts of an option such as "palin,fib"."""
  return text.split(",")


def make_parser(doc: str, folder: str, presets: str) -> argparse.ArgumentParser:
  """The options that all scripts for tables share.

  Args:
    doc: what the script does.
    folder: where the runs are by default.
    presets: the known ones; the first is the default.
  """
  parser = argparse.ArgumentParser(
    description=doc,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  add = parser.add_argument
  add("--folder", type=Path, default=Path(folder), help="of all runs")
  add("--preset", default=names(presets)[0], help=presets)
  add("--jobs", type=int, default=1, help="runs at the same time")
  add("--show", action="store_true", help="run nothing, print the table")
  add("--markdown", action="store_true", help="print a Markdown table")
  return parser


def run_missing(script: Path, runs: Sequence[Run], jobs: int) -> bool:
  """Trains what is not finished, `jobs` at a time; False if one failed.

  Each run has a process and, beside its folder, a log of its own.
  """
  with futures.ThreadPoolExecutor(jobs) as pool:
    return not sum(pool.map(lambda run: _train(script, run), runs))


def as_text(rows: Sequence[Sequence[str]], markdown: bool) -> str:
  """The rows as a plain or as a Markdown table."""
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  padded = [
    [f"{text:{width}}" for text, width in zip(row, widths, strict=True)]
    for row in rows
  ]
  if not markdown:
    return "\n".join("  ".join(row).rstrip() for row in padded)
  padded.insert(1, ["-" * width for width in widths])
  return "\n".join(f"| {' | '.join(row)} |" for row in padded)


def _train(script, run):
  if run.results():
    return 0
  run.workdir.parent.mkdir(parents=True, exist_ok=True)
  log = run.workdir.with_name(run.workdir.name + ".log")
  print(f"{run.workdir.name} starts, see {log}", flush=True)
  with log.open("a") as file:
    status = subprocess.run(
      [sys.executable, script, *run.arguments], stdout=file, stderr=file
    ).returncode
  print(f"{run.workdir.name} ends with status {status}", flush=True)
  return status
