"""The table of results, ours next to the paper's Table 1."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from experiments.table import Run

CONFIGS = Path(__file__).resolve().parents[1] / "configs" / "algorithmic"

SPLITS = ("id", "od_easy", "od_hard")

# Sequence accuracy in percent on ID / OD-easy / OD-hard, by the paper.
PAPER_TASKS = ("palin", "fib", "reduce")
PAPER = {
  "nam_tm": ("100/100/100", "97.4/89.7/71.5", "100/100/100"),
  "nam_tm_nojump": ("100/100/100", "40.4/19.8/1.1", "100/100/100"),
  "lsam": ("100/100/100", "100/39.9/2.9", "99.9/96.8/77.6"),
  "dnc": ("100/100/100", "46.9/1.8/0.0", "100/95.7/60.1"),
  "ut": ("100/99.2/5.2", "99.1/21.3/0.1", "98.7/15.7/0.0"),
  "lstm": ("100/100/100", "46.2/8.3/0.0", "99.5/91.5/63.6"),
  "transformer": ("100/65.6/19.0", "98.9/0.4/0.0", "99.6/0.2/0.0"),
}


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
    for split in SPLITS
  ]
  seeds = f" x{len(done)}" if len(runs) > 1 else ""
  return "/".join(_percent(mean) for mean in means) + seeds


def _percent(share):
  return "100" if share == 1 else f"{100 * share:.1f}"


def _papers(task, model):
  if task not in PAPER_TASKS or model not in PAPER:
    return ""
  return f" ({PAPER[model][PAPER_TASKS.index(task)]})"
