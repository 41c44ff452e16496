"""Learning curves and comparisons; needs matplotlib, as `nam_jax.viz` does."""

import textwrap
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nam_jax import viz

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
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, -3), min(high, 103))
  axes.set(xlabel="updates", ylabel=textwrap.fill(metric, 24))
  axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
  axes.grid(color=viz.GREY, alpha=0.3)
  names = [_literal(name) for name in lines]
  figure.legend(drawn, names, loc="outside lower center")
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
  axes.set(xlabel=xlabel, xlim=(-4, 104), ylim=(len(rows) - 0.5, -0.5))
  axes.set_yticks(range(len(rows)), [_literal(name) for name in rows])
  axes.grid(color=viz.GREY, alpha=0.3)
  names = ["here, each run", "paper"]
  figure.legend([here, theirs], names, loc="outside upper center", ncols=2)
  return figure


def _literal(name):
  """A name that matplotlib neither reads as a formula nor leaves out."""
  name = name.replace("$", r"\$")
  return f" {name}" if name.startswith("_") else name
