"""What a table knows of its runs: from their folders, or recorded before.

A file like docs/results.json keeps the runs of a table as well as its cells, so
that a table can be made in several parts, after the folders of the first runs
are gone.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from algorithmic.suites import Results, Suite, Value
from command_line import record


class Cell(NamedTuple):
  """Which run: one seed of a model on a task."""

  row: str
  task: str
  seed: int


class Outcome(NamedTuple):
  """A finished run."""

  value: Value  # what the suite keeps of its results
  epochs: float
  minutes: float
  machine: str
  date: str
  commit: str


def of(suite: Suite, runs: Mapping[Cell, Results]) -> dict[Cell, Outcome]:
  """The outcomes of runs that are recorded today."""
  when = record.when() if runs else {}
  return {
    cell: Outcome(
      suite.value(results),
      round(results["epochs"], 2),
      round(results["wall_seconds"] / 60, 1),
      record.machines([results]),
      **when,
    )
    for cell, results in runs.items()
  }


def recorded(table: Mapping[str, Any] | None) -> dict[Cell, Outcome]:
  """The outcomes that a recorded table has."""
  runs = table.get("runs", ()) if table else ()
  return {
    Cell(*(run[name] for name in Cell._fields)): Outcome(
      *(run[name] for name in Outcome._fields)
    )
    for run in runs
  }


def as_record(outcomes: Mapping[Cell, Outcome]) -> list[dict[str, Any]]:
  """The same for a table to record."""
  return [cell._asdict() | run._asdict() for cell, run in outcomes.items()]


def made(outcomes: Iterable[Outcome]) -> dict[str, str]:
  """Machines, days and commits of all runs, each named once."""
  every = sorted(outcomes, key=lambda run: run.date)
  return {
    "machine": "; ".join(dict.fromkeys(run.machine for run in every)),
    "date": " to ".join(dict.fromkeys((every[0].date, every[-1].date))),
    "commit": ", ".join(dict.fromkeys(run.commit for run in every)),
  }
