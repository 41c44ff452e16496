"""The table of the Long Range Arena's results next to the paper's Table 3."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from command_line.tables import Run
from lra_tasks import paper

CONFIGS = Path(__file__).resolve().parents[1] / "configs" / "lra"

ATTENTIONS = (*paper.RESULTS, "nam_erase")


class Cell(NamedTuple):
  """One training: a config file, an attention, a preset and a seed."""

  task: str
  attention: str
  preset: str
  seed: int

  def run(self, folder: Path, extra: Sequence[str] = ()) -> Run:
    """The run in the folder of the table, with further arguments."""
    config = f"{CONFIGS / self.task}.py:{self.attention},{self.preset}"
    workdir = folder / "-".join(map(str, self))
    arguments = (f"--config={config}", f"--config.seed={self.seed}")
    return Run(workdir, (*arguments, f"--model_dir={workdir}", *extra))


def table(
  folder: Path,
  tasks: Sequence[str],
  attentions: Sequence[str],
  preset: str,
  seed: int,
) -> list[list[str]]:
  """Rows of texts: our accuracy after how many steps, (the paper's)."""
  rows = [["attention", *tasks]]
  for attention in attentions:
    cells = []
    for task in tasks:
      results = Cell(task, attention, preset, seed).run(folder).results()
      cells.append(_ours(results) + _papers(task, attention))
    rows.append([attention, *cells])
  return rows


def _ours(results):
  if not results:
    return "-"
  seconds = results["wall_seconds"]
  return (
    f"{100 * results['accuracy']:.2f}, {results['last']['step']:,} steps,"
    f" {seconds / 60:.0f} min"
  )


def _papers(task, attention):
  numbers = paper.RESULTS.get(attention, {}).get(task)
  if not numbers:
    return ""
  accuracy, speed = numbers
  return f" ({accuracy:g})" if speed == 1 else f" ({accuracy:g}, {speed:g}x)"
