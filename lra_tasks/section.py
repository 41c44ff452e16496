"""Runs of train_lra.py, next to the paper's Table 3."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from lra_tasks import paper, pictures, registry, upstream
from nam_jax.models import attentions as models
from report import html
from report import pictures as page_pictures
from report.comparison import Comparison
from report.run import (
  Kind,
  Run,
  by_config,
  command,
  duration,
  listed,
  number,
  percent,
)

_HEADER = (
  *("task", "attention", "seeds", "accuracy\u00a0%", "paper"),
  *("best state\u00a0%", "longest input", "updates", "parameters"),
  *("updates/s", "paper: speed / softmax", "time"),
)
_NOTE = (
  "Best state: the one that was best in validation. Text with validation=test,"
  " as in runs with compat and in those of older versions, chooses it on test"
  " rows, so only the accuracy after the last update is fair there. Several"
  " seeds are averaged."
)
_PAPER_NOTE = (
  "The paper's numbers (Table 3) are for the benchmark's"
  " network; that of presets cpu and s5 is another one, that of plain smaller."
  " ListOps with preset plain has shorter inputs, text has 2,048 bytes with cpu"
  " and plain where the paper has 1,000."
)


class Facts(NamedTuple):
  """The part of results.json that is shown."""

  task: str
  attention: str
  seed: int
  parameters: int
  accuracy: float  # after the last step
  best_accuracy: float  # of the state that was best in validation
  pace: float | None  # updates per second
  seconds: float


def read(results: dict[str, Any]) -> Facts:
  """The facts from the content of results.json."""
  pace = results["steps_per_second"]
  return Facts(
    upstream.our_task(str(results["task"]))[0],
    str(results["attention"]),
    int(results["seed"]),
    int(results["parameters"]),
    float(results["last"]["accuracy"]),
    float(results["best"]["accuracy"]),
    None if pace is None else float(pace),
    float(results["wall_seconds"]),
  )


def _row(group):
  facts = [run.facts for run in group]
  first, settings = facts[0], group[0].config.get("task_kwargs")
  longest = settings.get("max_length") if isinstance(settings, dict) else None
  accuracy, speed = _papers(first) or (None, None)
  return [
    first.task,
    first.attention,
    html.links([(str(r.facts.seed), r.anchor) for r in group]),
    percent([f.accuracy for f in facts], 2),
    number(accuracy),
    percent([f.best_accuracy for f in facts], 2),
    number(longest),
    group[0].steps(),
    listed(number(f.parameters) for f in facts),
    listed(number(f.pace, ".3g") for f in facts),
    number(speed),
    listed(duration(f.seconds) for f in facts),
  ]


def _papers(facts):
  return paper.RESULTS.get(facts.attention, {}).get(facts.task)


def _numbers(facts):
  if not (papers := _papers(facts)):
    return {}
  name = f"{facts.task}, {facts.attention}"
  return {"test accuracy (%)": (name, 100 * facts.accuracy, papers[0])}


_TABLE = Comparison(
  "Test accuracy after the last update",
  _HEADER,
  3,
  _NOTE,
  _PAPER_NOTE,
  paper.TASKS,
  _row,
  _numbers,
)


def show(runs: Sequence[Run]) -> list[Element]:
  """The table, and for each task a picture of accuracy against time."""
  tasks: dict[str, list[Run]] = {}
  for run in runs:
    tasks.setdefault(run.facts.task, []).append(run)
  figures = (_by_time(*item) for item in sorted(tasks.items()))
  return [*_TABLE.show(runs), *itertools.chain.from_iterable(figures)]


def _by_time(task, runs):
  lines = {}
  for group in by_config(runs):
    attention = group[0].facts.attention
    name = group[0].name if attention in lines else attention
    curves = [run.curves[""].rows for run in group if "" in run.curves]
    lines[name] = [pictures.curve(rows) for rows in curves]
  if figure := pictures.draw(task, lines):
    alt = "; ".join(
      f"{name}: {list(curve.values())[-1]:.1f} after {max(curve):.1f} minutes"
      for name, curves in lines.items()
      for curve in filter(None, curves)
    )
    caption = f"{task}: validation accuracy (%) by minutes of training"
    yield page_pictures.drawn(figure, caption, alt)


KIND = Kind(
  "Long Range Arena",
  frozenset({"task", "attention", "last", "best"}),
  frozenset({"task", "attention"}),
  command(
    "lra_tasks",
    "train_lra.py",
    {"task": [*registry.TASKS, *upstream.OUR_NAMES], "attention": models.KINDS},
    "task",
    generated=("listops", "basic"),
  ),
  read,
  show,
)
