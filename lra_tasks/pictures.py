"""Learning curves against time: all attentions on one task."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lra_tasks import paper
from report import pictures
from report.run import is_number

if TYPE_CHECKING:
  from matplotlib.figure import Figure

# Minutes of training -> validation accuracy in percent.
Curve = dict[float, float]

# Accuracy of guessing, in percent.
_CHANCE = {
  "listops": 10.0,
  "text": 50.0,
  "retrieval": 50.0,
  "image": 10.0,
  "pathfinder": 50.0,
}


def curve(rows: Iterable[Mapping[str, Any]]) -> Curve:
  """The evaluations among the rows of metrics.jsonl."""
  return {
    row["seconds"] / 60: 100 * row["accuracy"]
    for row in rows
    if row["kind"] == "eval"
    and is_number(row, "accuracy")
    and is_number(row, "seconds")
  }


def draw(task: str, lines: Mapping[str, Sequence[Curve]]) -> "Figure | None":
  """The curves of each attention's seeds; None if there is nothing to draw."""
  drawing = pictures.drawing()
  if drawing is None or not any(any(curves) for curves in lines.values()):
    return None
  papers = {
    name: tasks[task][0]
    for name, tasks in paper.RESULTS.items()
    if task in tasks
  }
  return drawing.accuracy_by_time(task, lines, papers, _CHANCE.get(task, 0.0))


def save(folder: Path, task: str, lines: Mapping[str, Sequence[Curve]]) -> None:
  """Writes lra_TASK.png; says so if matplotlib is missing."""
  if pictures.drawing() is None:
    print(pictures.NO_MATPLOTLIB)
  elif figure := draw(task, lines):
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"lra_{task}.png", dpi=150)
