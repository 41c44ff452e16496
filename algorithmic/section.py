"""Runs of train_algorithmic.py, beside the paper's Table 1."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from algorithmic import paper
from report import commands, html, pictures
from report.run import Kind, Run, by_config, duration, listed, number, percent

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


class Facts(NamedTuple):
  """What results.json says."""

  task: str
  model: str
  preset: str
  seed: int
  parameters: int
  epoch: float
  accuracies: tuple[float, ...]  # of sequences, by split
  seconds: float


def read(results: dict[str, Any]) -> Facts:
  """The facts in results.json."""
  splits = results["splits"]
  return Facts(
    str(results["task"]),
    str(results["model"]),
    str(results["preset"]),
    int(results["seed"]),
    int(results["parameters"]),
    float(results["selected_epoch"]),
    tuple(float(splits[s]["sequence_accuracy"]) for s in _SPLITS),
    float(results["wall_seconds"]),
  )


def show(runs: Sequence[Run]) -> list[Element]:
  """The table, and the numbers that the paper has as well as a picture."""
  groups = by_config(runs)
  groups.sort(key=lambda group: group[0].facts[:3])
  shown = [
    html.table(
      "Sequence accuracy on the numbers of each split",
      _HEADER,
      [_row(group) for group in groups],
      texts=4,
    ),
    html.element(
      "p",
      "A sequence counts if all of its tokens are right. ID: 5 to 10 digits, as"
      " in training; OD-easy: 11 to 13; OD-hard: 14 to 16. The epoch that is"
      " best on OD-easy counts; several seeds are averaged. The paper (Table 1)"
      " trains models of 22 to 40 million parameters for up to 200 epochs.",
      class_="note",
    ),
  ]
  return shown + pictures.comparison(_panels(runs))


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
    ours = percent([f.accuracies[i] for f in facts])
    cells += [ours, number(papers, ".1f")]
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


def _panels(runs):
  """Split -> task and model -> (ours, the paper's), in percent."""
  panels = {f"accuracy on {title} (%)": {} for title in _SPLITS.values()}
  for facts in sorted((run.facts for run in runs), key=lambda f: f[:2]):
    for i, papers in enumerate(_papers(facts) or ()):
      rows = panels[list(panels)[i]]
      ours, _ = rows.setdefault(f"{facts.task}, {facts.model}", ([], papers))
      ours.append(100 * facts.accuracies[i])
  return panels


KIND = Kind(
  "Algorithmic tasks",
  frozenset({"task", "model", "splits"}),
  frozenset({"task", "model", "curriculum_start"}),
  commands.training("train_algorithmic.py", "--workdir"),
  read,
  show,
)
