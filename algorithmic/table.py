"""The table of results, ours next to the paper's Table 1."""

import itertools
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
  )
  options = tables.parse(table, tables.make_parser(table, usage), argv)
  cells = itertools.product(options.seeds, options.tasks, options.models)
  runs = {
    (seed, task, model): tables.make_run(table, options, task, model, seed)
    for seed, task, model in cells
  }
  failed = 0
  if not options.show:
    failed = tables.complete(table, runs.values(), options.jobs)
  texts = [["model", *options.tasks]]
  for model in options.models:
    texts.append([model])
    for task in options.tasks:
      found = [runs[seed, task, model].results() for seed in options.seeds]
      texts[-1].append(_cell(task, model, found))
  print(tables.as_text(texts, options.markdown))
  return int(failed > 0)


def _config(task, model):
  if (_CONFIGS / f"{task}.py").exists():
    return f"{_CONFIGS}/{task}.py:{model}"
  return f"{_CONFIGS}/task.py:{task},{model}"


def _cell(task, model, found):
  """Ours and the paper's; `found` has None for runs that are not finished."""
  finished = [results for results in found if results]
  text = _ours(finished) if finished else "-"
  if finished and len(found) > 1:
    text += f" x{len(finished)}"
  papers = _papers(task, model)
  return f"{text} ({papers})" if papers else text


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
