"""The results as tables and as JSON."""

import os
import platform
import sys
from collections.abc import Sequence
from typing import Any

import jax

import nam_jax
from benchmarks import peers
from benchmarks.candidate import Result, Settings
from benchmarks.goals import Goal
from command_line import tables

HEADER = (
  "group",
  "task",
  "size",
  "candidate",
  "ms",
  "median ms",
  "times as fast",
  "compile s",
  "temporary MiB",
  "GFLOP",
)
_SKIPPED = ("-", "-", "-", "", "", "")


def as_text(races: Sequence[Sequence[Result]]) -> str:
  """A line per result, with ratios to the first in its race."""
  rows = [HEADER]
  for race in races:
    first = next((r for r in race if r.seconds is not None), None)
    for r in race:
      rows.append(
        (
          r.group,
          r.task,
          str(r.size),
          r.name,
          *(_measured(r, first) if not r.skipped else _SKIPPED),
        )
      )
  text = tables.as_text(rows, markdown=False)
  return "\n".join([text, *_notes(races)])


def _measured(r, first):
  ratio = (first.seconds / first.size) / (r.seconds / r.size)
  return (
    f"{1e3 * r.seconds:.2f}",
    _number(r.median_seconds and 1e3 * r.median_seconds, ".2f"),
    f"{ratio:.2f}",
    _number(r.compile_seconds, ".2f"),
    _number(r.temporary_mib, ".1f"),
    _number(r.flops and r.flops / 1e9, ".3f"),
  )


def _number(value, form):
  return "" if value is None else format(value, form)


def _notes(races) -> list[str]:
  """What was skipped, and the rates of streams and episodes."""
  notes = []
  for r in (r for race in races for r in race):
    if r.skipped:
      notes.append(f"skipped: {r.name}, {r.task}, {r.size}: it {r.skipped}")
    elif r.group == "streaming":
      rate = r.size / r.seconds
      notes.append(f"streaming, {r.name}: {rate:,.0f} tokens/s, batch 1")
    elif r.group == "fewshot":
      notes.append(f"few-shot, {r.name}: {r.size / r.seconds:,.0f} episodes/s")
  return notes


def announce(results: Sequence[Result], passed: float) -> None:
  """Reports on stderr what has been measured after how many seconds."""
  first, raced = results[0], ", ".join(r.name for r in results)
  print(
    f"{passed:4.0f} s: {first.group}, {first.task}, {first.size}: {raced}",
    file=sys.stderr,
    flush=True,
  )


def goals_as_text(goals: Sequence[Goal]) -> str:
  """The goals, what was measured, and which are met."""
  rows = [("goal", "value", "aim", ""), *(goal.cells() for goal in goals)]
  return tables.as_text(rows, markdown=False)


def as_json(
  settings: Settings, races: Sequence[Sequence[Result]], goals: Sequence[Goal]
) -> dict[str, Any]:
  """Everything, for a file.

  Returns:
    `machine` and `settings`; `results`, a list with the fields of `Result`;
    `goals`, a list with the fields of `Goal` and `met`.
  """
  return {
    "machine": machine(),
    "settings": settings._asdict(),
    "results": [r._asdict() for race in races for r in race],
    "goals": [goal._asdict() | {"met": goal.met} for goal in goals],
  }


def machine() -> dict[str, Any]:
  """What runs the benchmark."""
  return {
    "platform": jax.default_backend(),
    "device": jax.devices()[0].device_kind,
    "cores": len(os.sched_getaffinity(0)),
    "python": platform.python_version(),
    "jax": jax.__version__,
    "nam_jax": nam_jax.__version__,
    "torch": peers.version(),
  }
