"""Runs of train_algorithmic.py, next to the paper's Table 1."""

from typing import Any, NamedTuple

from algorithmic import paper
from algorithmic.tasks import registry as tasks
from nam_jax.models import registry as models
from report import html
from report.comparison import Comparison
from report.run import Kind, command, duration, listed, number, percent

_SPLITS = dict(zip(paper.SPLITS, ("ID", "OD-easy", "OD-hard"), strict=True))
_HEADER = (
  *("task", "model", "preset", "seeds"),
  *(
    title
    for split in _SPLITS.values()
    for title in (f"{split}\u00a0%", "paper")
  ),
  *("updates", "best epoch", "parameters", "paper", "time"),
)
_NOTE = (
  "A sequence is right if all of its tokens are. ID: 5 to 10 digits, as in"
  " training; OD-easy: 11 to 13; OD-hard: 14 to 16. The epoch that is best on"
  " OD-easy counts; several seeds are averaged."
)
_PAPER_NOTE = (
  "The paper (Table 1) trains"
  " models of 22 to 40 million parameters for up to 200 epochs. Preset cpu of"
  " nam_tm has a read-out of a hidden layer and a small LSTM, which the paper"
  " does not describe, and adds numbers on a longer tape than it was trained"
  " with."
)


class Facts(NamedTuple):
  """The part of results.json that is shown."""

  task: str
  model: str
  preset: str
  seed: int
  parameters: int
  epoch: float
  accuracies: tuple[float | None, ...]  # of sequences; None: no such split
  seconds: float


def read(results: dict[str, Any]) -> Facts:
  """The facts from the content of results.json."""
  splits = results["splits"]
  return Facts(
    str(results["task"]),
    str(results["model"]),
    str(results["preset"]),
    int(results["seed"]),
    int(results["parameters"]),
    float(results["selected_epoch"]),
    tuple(_accuracy(splits, name) for name in _SPLITS),
    float(results["wall_seconds"]),
  )


def _accuracy(splits, name):
  """Other protocols than the paper's have other sets besides ID."""
  if name != "id" and name not in splits:
    return None
  return float(splits[name]["sequence_accuracy"])


def _row(group):
  facts = [run.facts for run in group]
  first = facts[0]
  published, millions = _papers(first), paper.PARAMETERS.get(first.model)
  cells = [
    first.task,
    first.model,
    first.preset,
    html.links([(str(r.facts.seed), r.anchor) for r in group]),
  ]
  for i, papers in enumerate(published or [""] * len(_SPLITS)):
    found = [f.accuracies[i] for f in facts if f.accuracies[i] is not None]
    cells += [percent(found) if found else "", number(papers, ".1f")]
  return [
    *cells,
    group[0].steps(),
    listed(number(f.epoch, ".4g") for f in facts),
    listed(number(f.parameters) for f in facts),
    f"{millions:g} M" if millions else "",
    listed(duration(f.seconds) for f in facts),
  ]


def _papers(facts):
  return paper.ACCURACY.get(facts.model, {}).get(facts.task)


def _numbers(facts):
  name = f"{facts.task}, {facts.model}"
  return {
    f"accuracy on {title} (%)": (name, 100 * ours, papers)
    for title, ours, papers in zip(
      _SPLITS.values(), facts.accuracies, _papers(facts) or (), strict=False
    )
    if ours is not None
  }


KIND = Kind(
  "Algorithmic tasks",
  frozenset({"task", "model", "splits"}),
  frozenset({"task", "model", "curriculum_start"}),
  command(
    "algorithmic",
    "train_algorithmic.py",
    {"task": tasks.TASKS, "model": models.CORES},
  ),
  read,
  Comparison(
    "Sequence accuracy on the numbers of each split",
    _HEADER,
    4,
    _NOTE,
    _PAPER_NOTE,
    paper.TASKS,
    _row,
    _numbers,
  ).show,
)
