"""The table of results, ours next to the paper's Table 1."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from algorithmic import paper
from command_line.tables import Run

CONFIGS = Path(__file__).resolve().parents[1] / "configs" / "algorithmic"


class Cell(NamedTuple):
  """One training: a task, a model, a preset and a seed."""

  task: str
  model: str
  preset: str
  seed: int

  def run(self, folder: Path, extra: Sequence[str] = ()) -> Run:
    """The run in the folder of the table, with further arguments."""
    config = f"{CONFIGS / self.task}.py:{self.model},{self.preset}"
    if not (CONFIGS / f"{self.task}.py").exists():
      config = f"{CONFIGS}/task.py:{self.task},{self.model},{self.preset}"
    workdir = folder / "-".join(map(str, self))
    arguments = (f"--config={config}", f"--config.seed={self.seed}")
    return Run(workdir, (*arguments, f"--workdir={workdir}", *extra))


def table(
  folder: Path,
  tasks: Sequence[str],
  models: Sequence[str],
  preset: str,
  seeds: Sequence[int],
) -> list[list[str]]:
  """Rows of texts: ours, the number of seeds if several, (the paper's)."""
  rows = [["model", *tasks]]
  for model in models:
    cells = []
    for task in tasks:
      runs = [Cell(task, model, preset, seed).run(folder) for seed in seeds]
      cells.append(_ours(runs) + _papers(task, model))
    rows.append([model, *cells])
  return rows


def _ours(runs):
  """The mean over those seeds that are done."""
  done = [results for run in runs if (results := run.results())]
  if not done:
    return "-"
  means = [
    sum(d["splits"][split]["sequence_accuracy"] for d in done) / len(done)
    for split in paper.SPLITS
  ]
  seeds = f" x{len(done)}" if len(runs) > 1 else ""
  return "/".join(_percent(mean) for mean in means) + seeds


def _percent(share):
  return "100" if share == 1 else f"{100 * share:.1f}"


def _papers(task, model):
  accuracies = paper.ACCURACY.get(model, {}).get(task)
  if not accuracies:
    return ""
  return f" ({'/'.join(_percent(percent / 100) for percent in accuracies)})"
