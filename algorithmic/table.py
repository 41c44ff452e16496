"""The table of results, ours next to the paper's Table 1."""

from collections.abc import Sequence
from pathlib import Path

from algorithmic import paper
from algorithmic.config import NAMES
from command_line import tables

_CONFIGS = Path(__file__).resolve().parents[1] / "configs" / "algorithmic"


def main(argv: Sequence[str], usage: str = __doc__) -> int:
  """Runs what is missing and prints the table; returns 1 on failure."""
  table = tables.Table(
    "train_algorithmic.py",
    "runs/table",
    NAMES,
    "model",
    tuple(paper.ACCURACY),
    paper.TASKS,
    _config,
    _ours,
    _papers,
  )
  return tables.main(table, argv, usage)


def _config(task, model):
  if (_CONFIGS / f"{task}.py").exists():
    return f"{_CONFIGS}/{task}.py:{model}"
  return f"{_CONFIGS}/task.py:{task},{model}"


def _ours(runs):
  """The mean over all seeds."""
  return "/".join(
    _percent(
      sum(run["splits"][split]["sequence_accuracy"] for run in runs) / len(runs)
    )
    for split in paper.SPLITS
  )


def _papers(task, model):
  accuracies = paper.ACCURACY.get(model, {}).get(task, ())
  return "/".join(_percent(percent / 100) for percent in accuracies)


def _percent(share):
  return "100" if share == 1 else f"{100 * share:.1f}"
