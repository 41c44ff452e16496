"""Runs of train_fewshot.py, next to the paper's Table 2."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

from fewshot import backbones, paper
from fewshot.data import registry
from report import html
from report.run import Kind, Run, command, duration, number

_COLUMNS = {
  "both": "Both\u00a0%",
  "novel": "Novel\u00a0%",
  "base": "Base\u00a0%",
  "novel_to_base": "novel\u2192base\u00a0%",
}
_HEADER = (
  "head",
  *_COLUMNS.values(),
  "Both, difference from",
  "parameters",
  "time",
)


class Head(NamedTuple):
  """A head and its results."""

  label: str
  accuracies: tuple[str, ...]  # with their intervals, one of each column
  difference: str
  parameters: int
  seconds: float


class Facts(NamedTuple):
  """The part of results.json that is shown."""

  data: str
  backbone: str
  seed: int
  num_way: int
  num_episodes: int
  stage1_seconds: float
  shots: dict[int, list[Head]]


def read(results: dict[str, Any]) -> Facts:
  """The facts from the content of results.json."""
  return Facts(
    str(results["data"]),
    str(results["backbone"]),
    int(results["seed"]),
    int(results["num_way"]),
    int(results["num_episodes"]),
    float(results["stage1"]["seconds"]),
    {
      int(shot): [_head(str(label), found) for label, found in heads.items()]
      for shot, heads in results["shots"].items()
    },
  )


def show(runs: Sequence[Run]) -> list[Element]:
  """A table for each run and number of shots."""
  tables = [
    _table(run, shot, heads)
    for run in runs
    for shot, heads in run.facts.shots.items()
  ]
  note = html.element(
    "p",
    "Both: queries of base and novel classes among all classes; Novel and Base:"
    " each kind among its own classes; novel\u2192base: queries of novel"
    " classes taken for base ones. Means over episodes with 95% intervals. The"
    " paper (Table 2) has numbers only for mini-ImageNet, with a ResNet.",
    class_="note",
  )
  return [*tables, note]


def _head(label, found):
  gain, other = found["difference"].get("both"), found["compared_with"]
  return Head(
    label,
    tuple(_interval(found["accuracy"][name], ".2f") for name in _COLUMNS),
    f"{other} {_interval(gain, '+.2f')}" if gain else "",
    int(found["parameters"]),
    float(found["seconds"]),
  )


def _interval(value, form):
  return f"{100 * value['mean']:{form}} \u00b1{100 * value['ci95']:.2f}"


def _table(run, shot, heads):
  facts = run.facts
  rows = [
    [
      head.label,
      *head.accuracies,
      head.difference,
      number(head.parameters),
      duration(head.seconds),
    ]
    for head in heads
  ]
  if facts.data == "mini-imagenet":
    for name, numbers in paper.ACCURACY.get(shot, {}).items():
      cells = [f"{x:.2f}" for x in numbers]
      rows.append([f"paper, {name}, ResNet", *cells, "", "", "", ""])
  caption = (
    f"{run.name}: {shot}-shot {facts.num_way}-way on {facts.data}, features of"
    f" {facts.backbone} (stage 1: {duration(facts.stage1_seconds)}), seed"
    f" {facts.seed}, {facts.num_episodes:,} episodes"
  )
  return html.table(caption, _HEADER, rows, texts=1)


KIND = Kind(
  "Few-shot learning",
  frozenset({"data", "backbone", "stage1", "shots"}),
  frozenset({"data", "backbone", "stage1"}),
  command(
    "fewshot",
    "train_fewshot.py",
    {"data": registry.SOURCES, "backbone": backbones.BACKBONES},
    "data",
    generated=("glyphs",),
  ),
  read,
  show,
  stage_keys=frozenset({"settings"}),
)
