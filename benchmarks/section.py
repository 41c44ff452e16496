"""What `make bench` measured."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from benchmarks.goals import Goal
from report import html
from report.run import Kind, Run, number

_GOALS = ("goal", "measured", "aim", "")
_TIMES = ("group", "what", "candidate", "tokens or episodes", "ms")
_TIMES += ("compilation s", "temporary MiB", "GFLOP")


class Facts(NamedTuple):
  """What results.json says, as cells of the tables."""

  goals: list[list[str]]
  times: list[list[str]]
  skipped: list[str]
  settings: dict[str, Any]


def read(results: dict[str, Any]) -> Facts:
  """The facts from the content of results.json."""
  raced = results["results"]
  return Facts(
    [_goal(**goal) for goal in results["goals"]],
    [_time(r) for r in raced if r["skipped"] is None],
    [
      f"{r['name']}, {r['task']}, {r['size']}: it {r['skipped']}"
      for r in raced
      if r["skipped"] is not None
    ],
    dict(results["settings"]),
  )


def show(runs: Sequence[Run]) -> list[Element]:
  """Which goals are met and, folded away, all times."""
  shown = []
  for run in runs:
    facts = run.facts
    caption = f"{run.name}: goals, met and missed"
    shown.append(html.table(caption, _GOALS, facts.goals, texts=1))
    times = html.table("Fastest round of each", _TIMES, facts.times, texts=3)
    skipped = [html.element("p", f"Skipped: {line}") for line in facts.skipped]
    title = f"{run.name}: all {len(facts.times)} times"
    shown.append(html.details(title, times, *skipped))
    settings = html.element("pre", json.dumps(facts.settings, indent=2))
    shown.append(html.details(f"{run.name}: settings", settings))
  note = "The goals are for the default sizes; --quick only shows that it runs."
  return [*shown, html.element("p", note, class_="note")]


def _goal(met, name, **fields):
  return Goal(str(name), **fields).cells()


def _time(r):
  flops = r["flops"]
  return [
    str(r["group"]),
    str(r["task"]),
    str(r["name"]),
    number(r["size"]),
    number(1e3 * r["seconds"], ".2f"),
    number(r["compile_seconds"], ".2f"),
    number(r["temporary_mib"], ".1f"),
    number(flops and flops / 1e9, ".3f"),
  ]


KIND = Kind(
  "Speed",
  frozenset({"machine", "settings", "results", "goals"}),
  frozenset(),
  lambda config_file, folder, config: "make bench  # and the settings above",
  read,
  show,
)
