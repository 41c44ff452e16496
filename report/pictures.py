"""Pictures: those the scripts saved, and those drawn for the page."""

import io
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from report import html
from report.run import Curve, Run, is_number, listed, plural

if TYPE_CHECKING:
  from matplotlib.figure import Figure

# File -> what it shows; the first group of the name is filled in.
_CAPTIONS = {
  r"accuracy_by_length\.png": "Accuracy by the number of digits",
  r"heads_(\d+)_digits\.png": "Heads of the machines on their tapes while they"
  " read a number of {} digits: a row of pictures for each head, a column for"
  " each tape, tokens from left to right, cells of the tape downward",
  r"answers_(\d+)shot\.png": "How queries of base and of novel classes are"
  " answered, {}-shot",
  r"accuracy_by_shots\.png": "Accuracy by the number of examples of a class",
  r"cost_by_length\.png": "Time and memory by the length of the sequence",
}
# Lines of one picture.
_MOST_LINES = 8
NO_MATPLOTLIB = (
  "No learning curves: they need matplotlib (pip install matplotlib)."
)


def drawing():
  """The module that draws; None without matplotlib."""
  try:
    from report import drawing
  except ImportError:
    return None
  return drawing


def left_behind(run: Run) -> list[Element]:
  """The pictures in the run's folder."""
  return [
    html.picture(png, _caption(name), f"{_caption(name)}; run {run.name}")
    for name, png in run.pictures.items()
  ]


def drawn(figure: "Figure", caption: str, alt: str) -> Element:
  """A figure as part of the page."""
  content = io.BytesIO()
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # other scripts, extreme numbers
    figure.savefig(content, format="png", dpi=110)
  return html.picture(content.getvalue(), caption, alt)


def comparison(
  panels: Mapping[str, Mapping[str, tuple[Sequence[float], float]]],
) -> list[Element]:
  """Ours next to the paper's, title -> rows of `drawing.comparison`."""
  drawer, figures = drawing(), []
  for title, rows in panels.items():
    if drawer and rows:
      figure = drawer.comparison(title, rows)
      alt = "; ".join(
        f"{name}: here {listed(f'{x:.1f}' for x in ours)}, paper {papers:g}"
        for name, (ours, papers) in rows.items()
      )
      figures.append(drawn(figure, f"Ours and the paper's: {title}", alt))
  return [html.element("div", *figures, class_="pictures")]


def learning_curves(runs: Sequence[Run]) -> list[Element]:
  """Training loss and the validation metric, by task or by run."""
  if not any(curve.rows for run in runs for curve in run.curves.values()):
    return []
  if drawing() is None:
    return [html.element("p", NO_MATPLOTLIB)]
  topics: dict[str, dict[str, Curve]] = {}
  for run in runs:
    task = run.config.get("task")
    for stage, curve in run.curves.items():
      topic, name = f"Task {task}" if task else run.name, run.name
      if stage:
        topic = f"{run.name}, {'stage 1' if stage == 'stage1' else 'heads'}"
        name = stage
      if not run.finished:
        name += " (not finished)"
      topics.setdefault(topic, {})[name] = curve
  figures = [
    figure
    for topic, lines in topics.items()
    for figure in _learning_curves(topic, list(lines.items()))
  ]
  return [html.element("div", *figures, class_="pictures")]


def _learning_curves(topic, lines):
  for start in range(0, len(lines), _MOST_LINES):
    metrics = {}
    for name, curve in lines[start : start + _MOST_LINES]:
      for metric, line in _lines(curve).items():
        metrics.setdefault(metric, {})[name] = line
    for metric, curves in metrics.items():
      figure = drawing().learning_curves(metric, curves)
      alt = "; ".join(
        f"{name}: {list(line.values())[-1]:.4g} after"
        f" {plural(max(line), 'update')}"
        for name, line in curves.items()
      )
      yield drawn(figure, f"{topic}: {metric}", alt)


def _lines(curve):
  """Metric and unit -> step -> value: the loss and the selection metric."""
  selected = str(curve.config.get("selection_metric", "loss"))
  percent = curve.config.get("selection_mode") == "max"
  unit, factor = (" (%)", 100) if percent else ("", 1)
  title = f"{selected.replace('_', ' ')}, validation{unit}"
  found = {
    "training loss": _line(curve, "train", "loss", 1),
    title: _line(curve, "eval", selected, factor),
  }
  return {metric: line for metric, line in found.items() if line}


def _line(curve, kind, name, factor):
  return {
    int(row["step"]): float(factor * row[name])
    for row in curve.rows
    if row["kind"] == kind and is_number(row, name)
  }


def _caption(name):
  for pattern, text in _CAPTIONS.items():
    if match := re.fullmatch(pattern, name):
      return text.format(*match.groups())
  return name
