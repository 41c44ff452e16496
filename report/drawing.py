"""Learning curves and comparisons; needs matplotlib, as `nam_jax.viz` does."""

import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from nam_jax import viz
from report import html

_WIDTH = 4.6  # inches: readable on a phone


def learning_curves(
  metric: str, lines: Mapping[str, Mapping[int, float]]
) -> Figure:
  """A metric of some runs against the number of updates.

  Args:
    metric: what is measured, with its unit.
    lines: run -> step -> value. The axis of a loss is logarithmic if its
      values are positive and differ by more than a factor of 10.
  """
  figure = Figure(figsize=(_WIDTH, 3 + 0.22 * len(lines)), layout="constrained")
  axes = figure.subplots()
  drawn = [
    axes.plot(
      list(line.keys()),
      list(line.values()),
      markevery=max(1, len(line) // 12),
      **viz.line_style(i),
    )[0]
    for i, line in enumerate(lines.values())
  ]
  values = [value for line in lines.values() for value in line.values()]
  if "loss" in metric and 0 < 10 * min(values) < max(values):
    axes.set_yscale("log")
  if "%" in metric:
    axes.set_ylim(viz.PERCENT)
  axes.set(xlabel="updates", ylabel=textwrap.fill(_literal(metric), 24))
  axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
  axes.grid(color=viz.GREY, alpha=0.3)
  names = [_literal(name) for name in lines]
  figure.legend(drawn, names, loc="outside lower center")
  return figure


def accuracy_by_time(
  title: str,
  lines: Mapping[str, Sequence[Mapping[float, float]]],
  papers: Mapping[str, float],
  chance: float,
) -> Figure:
  """Validation accuracies in percent against minutes of training.

  Args:
    title: the figure's title.
    lines: name -> for each seed, minutes -> accuracy.
    papers: name -> the paper's accuracy, a dashed line in the same colour.
    chance: accuracy of guessing, a dotted line; 0: unknown.
  """
  figure = Figure(figsize=(7, 4), layout="constrained")
  axes, drawn, ends = figure.subplots(), {}, {}
  dashed = {"linestyle": (0, (5, 3)), "linewidth": 1.2, "alpha": 0.8}
  for i, (name, curves) in enumerate(lines.items()):
    style = {**viz.line_style(i), "linestyle": "-"}
    for curve in filter(None, curves):
      times, accuracies = list(curve), list(curve.values())
      (drawn[name],) = axes.plot(times, accuracies, markersize=5, **style)
      ends[name] = accuracies[-1]
    if name in drawn and name in papers:
      axes.axhline(papers[name], color=style["color"], **dashed)
  axes.set(title=_literal(title), xlabel="minutes of training", xlim=(0, None))
  axes.set(ylabel="validation accuracy (%)", ylim=viz.PERCENT)
  axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
  axes.spines[["top", "right"]].set_visible(False)
  axes.grid(color=viz.GREY, alpha=0.3)
  best_first = sorted(drawn, key=ends.__getitem__, reverse=True)
  key = {_literal(name): drawn[name] for name in best_first}
  if drawn.keys() & papers.keys():
    key["paper, same colour"] = Line2D([], [], color=viz.GREY, **dashed)
  if chance:
    key["guessing"] = axes.axhline(chance, color=viz.GREY, linestyle=":")
  figure.legend(key.values(), key.keys(), loc="outside right center")
  return figure


def comparison(
  xlabel: str, rows: Mapping[str, tuple[Sequence[float], float]]
) -> Figure:
  """Our numbers next to the paper's, all in percent.

  Args:
    xlabel: what the numbers are.
    rows: name -> (one number for each run of ours, the paper's).
  """
  figure = Figure(
    figsize=(_WIDTH, 1.3 + 0.28 * len(rows)), layout="constrained"
  )
  axes = figure.subplots()
  hollow = {"facecolors": "none", "edgecolors": viz.ORANGE, "linewidths": 1.8}
  for y, (ours, papers) in enumerate(rows.values()):
    theirs = axes.scatter([papers], [y], 90, marker="s", **hollow)
    here = axes.scatter(ours, [y] * len(ours), 28, viz.BLUE)
  axes.set(
    xlabel=_literal(xlabel), xlim=(-5, 105), ylim=(len(rows) - 0.5, -0.5)
  )
  axes.set_yticks(range(len(rows)), [_literal(name) for name in rows])
  axes.grid(color=viz.GREY, alpha=0.3)
  names = ["here, each run", "paper"]
  figure.legend([here, theirs], names, loc="outside upper center", ncols=2)
  return figure


def _literal(name):
  """A name that matplotlib neither reads as a formula nor leaves out.

  A long one gets several lines, so that it leaves room for the axes.
  """
  name = textwrap.fill(html.printable(name), 36).replace("$", r"\$")
  return f" {name}" if name.startswith("_") else name
