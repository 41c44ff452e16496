"""The table of the Long Range Arena's results next to the paper's Table 3."""

from collections.abc import Sequence

from command_line import tables
from lra_tasks import paper
from lra_tasks.config import NAMES


def main(argv: Sequence[str], usage: str = __doc__) -> int:
  """Runs what is missing and prints the table; returns 1 on failure."""
  table = tables.Table(
    "train_lra.py",
    "runs/lra",
    NAMES,
    "attention",
    (*paper.RESULTS, "nam_erase"),
    paper.TASKS,
    lambda task, attention: f"configs/lra/{task}.py:{attention}",
    _ours,
    _papers,
    read_tasks=("text", "retrieval", "image", "pathfinder"),
  )
  return tables.main(table, argv, usage)


def _ours(runs):
  """The mean over all seeds."""
  accuracy = sum(run["accuracy"] for run in runs) / len(runs)
  minutes = sum(run["wall_seconds"] for run in runs) / len(runs) / 60
  return (
    f"{100 * accuracy:.2f}, {runs[0]['last']['step']:,} steps,"
    f" {minutes:.0f} min"
  )


def _papers(task, attention):
  accuracy, speed = paper.RESULTS.get(attention, {}).get(task, (None, 1))
  if accuracy is None:
    return ""
  return f"{accuracy:g}" if speed == 1 else f"{accuracy:g}, {speed:g}x"
