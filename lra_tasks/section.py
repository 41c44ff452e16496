"""Runs of train_lra.py, beside the paper's Table 3."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from lra_tasks import paper
from report import commands, html, pictures
from report.run import Kind, Run, by_config, duration, listed, number, percent

_HEADER = (
  *("task", "attention", "seeds", "accuracy\u00a0%", "paper"),
  *("best state\u00a0%", "longest input", "updates", "parameters"),
  *("updates/s", "paper: speed / softmax", "time"),
)
# The benchmark's name of a task -> the paper's.
_PAPERS = {"basic": "listops", "imdb_reviews": "text", "cifar10": "cifar10"}


class Facts(NamedTuple):
  """What results.json says."""

  task: str
  attention: str
  seed: int
  parameters: int
  accuracy: float  # after the last step
  best_accuracy: float  # of the state that was best in validation
  pace: float | None  # updates a second
  seconds: float


def read(results: dict[str, Any]) -> Facts:
  """The facts in results.json."""
  pace = results["steps_per_second"]
  return Facts(
    str(results["task"]),
    str(results["attention"]),
    int(results["seed"]),
    int(results["parameters"]),
    float(results["last"]["accuracy"]),
    float(results["best"]["accuracy"]),
    None if pace is None else float(pace),
    float(results["wall_seconds"]),
  )


def show(runs: Sequence[Run]) -> list[Element]:
  """The table, and the numbers that the paper has as well as a picture."""
  groups = by_config(runs)
  groups.sort(key=lambda group: group[0].facts[:2])
  shown = [
    html.table(
      "Test accuracy after the last update",
      _HEADER,
      [_row(group) for group in groups],
      texts=3,
    ),
    html.element(
      "p",
      "Best state: the one that was best in validation. Several seeds are"
      " averaged. The paper's numbers (Table 3) are for the"
      " benchmark's full tasks and networks, so they are no measure of a small"
      " preset; preset cpu of ListOps has shorter inputs.",
      class_="note",
    ),
  ]
  return shown + pictures.comparison(_panels(runs))


def _row(group):
  facts = [run.facts for run in group]
  first, settings = facts[0], group[0].config.get("task_kwargs")
  longest = settings.get("max_length") if isinstance(settings, dict) else None
  accuracy, speed = _papers(first) or (None, None)
  return [
    _PAPERS.get(first.task, first.task),
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
  return paper.RESULTS.get(facts.attention, {}).get(_PAPERS.get(facts.task))


def _panels(runs):
  """Title -> task and attention -> (ours, the paper's), in percent."""
  rows = {}
  for facts in sorted((run.facts for run in runs), key=lambda f: f[:2]):
    if papers := _papers(facts):
      name = f"{_PAPERS[facts.task]}, {facts.attention}"
      ours, _ = rows.setdefault(name, ([], papers[0]))
      ours.append(100 * facts.accuracy)
  return {"test accuracy (%)": rows}


KIND = Kind(
  "Long Range Arena",
  frozenset({"task", "attention", "last", "best"}),
  frozenset({"task", "attention"}),
  commands.training("train_lra.py", "--model_dir", "task"),
  read,
  show,
)
