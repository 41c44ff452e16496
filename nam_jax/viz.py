"""Pictures of results; needs matplotlib (pip install 'nam-jax[plot]').

Every function returns a `Figure` that belongs to no window: save it with
`figure.savefig("name.png")`, or show it as the last line of a notebook cell
(after `%matplotlib inline`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

# Distinguishable with any kind of colour vision (Okabe & Ito 2008).
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
COLORS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "os^vD*PX"
# The axis of accuracies in percent: markers at 0 and 100 have room.
PERCENT = (-3, 103)
# Orange is positive, purple negative.
_SIGNED = {"cmap": "PuOr_r", "interpolation": "nearest"}


def accuracy_by_length(
  by_length: Mapping[int, Mapping[str, float]],
  trained_length: int,
  title: str = "",
) -> Figure:
  """Sequence and token accuracy against the number of digits.

  Args:
    by_length: digits -> `sequence_accuracy` and `token_accuracy` in [0, 1].
    trained_length: most digits in a training sample; marked by a line.
    title: the figure's title.
  """
  figure = Figure(figsize=(6, 3.5), layout="constrained")
  axes = figure.subplots()
  digits = sorted(by_length)
  lines = (("sequence", BLUE, "o", "-"), ("token", ORANGE, "s", "--"))
  for name, color, marker, style in lines:
    percent = [100 * by_length[d][f"{name}_accuracy"] for d in digits]
    axes.plot(digits, percent, style, color=color, marker=marker, label=name)
  axes.axvline(
    trained_length + 0.5, color=GREY, linestyle=":", label="longest trained"
  )
  axes.set(xlabel="digits", ylabel="accuracy (%)", ylim=PERCENT, title=title)
  axes.xaxis.set_major_locator(MaxNLocator(integer=True))
  figure.legend(loc="outside lower center", ncols=3)
  return figure


def tape_heads(heads: np.ndarray, symbols: Sequence[str]) -> Figure:
  """Where the heads of NAM Turing machines are on their tapes.

  Args:
    heads: [m s 2 h n] of m machines at s tokens: read and write heads of h
      tapes with n cells.
    symbols: [s], the label of each token.
  """
  machines, s, _, tapes, n = heads.shape
  figure = Figure(
    figsize=(2 + 0.09 * s * tapes, 1 + 0.11 * n * machines),
    layout="constrained",
  )
  grid = figure.subplots(
    2 * machines, tapes, sharex=True, sharey=True, squeeze=False
  )
  limit = max(float(np.abs(heads).max()), 1e-6)
  for row, axes_row in enumerate(grid):
    machine, kind = divmod(row, 2)
    for tape, axes in enumerate(axes_row):
      image = axes.imshow(
        heads[machine, :, kind, tape].T,
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        **_SIGNED,
      )
      _label_tokens(axes, symbols, fontsize=7)
      if tape == 0:
        name = ("read", "write")[kind]
        axes.set_ylabel(f"machine {machine + 1}\n{name} head\ncell")
      if row == 0:
        axes.set_title(f"tape {tape + 1}")
  figure.supxlabel("token")
  figure.colorbar(image, ax=grid, label="head")
  return figure


def tape_actions(
  heads: np.ndarray,
  actions: np.ndarray,
  names: Sequence[str],
  symbols: Sequence[str],
) -> Figure:
  """One tape token by token: where its heads are and how they move.

  A tape is a ring: the cells before the first one are -1, -2, and so on. Cells
  on either side that heads hardly reach are left out.

  Args:
    heads: [s 2 n] at s tokens: read and write head on n cells.
    actions: [s 2 a], the probabilities of their moves.
    names: [a], the names of the moves.
    symbols: [s], the label of each token.
  """
  s, _, n = heads.shape
  cells, ring = np.arange(n) - n // 2, np.roll(heads, n // 2, axis=-1)
  reach = np.abs(ring).max(axis=(0, 1))
  near = np.flatnonzero(reach >= 0.3 * reach.max())
  cells, ring = (x[..., near[0] : near[-1] + 1] for x in (cells, ring))
  rows = [len(cells), len(names)]
  figure = Figure(
    figsize=(3 + min(0.4 * s, 8), 1.2 + 0.2 * sum(rows)), layout="constrained"
  )
  grid = figure.subplots(2, 2, sharex=True, sharey="row", height_ratios=rows)
  for kind, (places, moves) in enumerate(grid.T):
    at = places.imshow(
      ring[:, kind].T, vmin=-1, vmax=1, aspect="auto", **_SIGNED
    )
    chance = moves.imshow(
      actions[:, kind].T, vmin=0, vmax=1, aspect="auto", cmap="Greys"
    )
    places.set_title(("read head", "write head")[kind])
    _label_tokens(moves, symbols, fontsize=8)
  grid[0, 0].set_yticks(range(len(cells)), cells, fontsize=7)
  grid[0, 0].set_ylabel("cell")
  grid[1, 0].set_yticks(range(len(names)), names)
  grid[1, 0].set_ylabel("next move")
  figure.supxlabel("token")
  figure.colorbar(at, ax=grid, label="head")
  figure.colorbar(chance, ax=grid, label="probability of the move")
  return figure


def answers(
  outcomes: Mapping[str, Mapping[str, Mapping[str, float]]],
) -> Figure:
  """How queries of base and of novel classes are answered, one bar per head.

  Args:
    outcomes: kind of query -> head -> answer -> share in [0, 1]; the shares of
      a head add up to 1, and the heads and the answers are the same for all.
  """
  heads = list(next(iter(outcomes.values())))
  figure = Figure(figsize=(9, 1.6 + 0.32 * len(heads)), layout="constrained")
  grid = figure.subplots(1, len(outcomes), sharey=True, squeeze=False)[0]
  styles = ((BLUE, ""), (GREY, "//"), (ORANGE, "xx"))
  for axes, (kind, by_head) in zip(grid, outcomes.items(), strict=True):
    left = np.zeros(len(heads))
    for i, name in enumerate(by_head[heads[0]]):
      share = np.array([100 * by_head[head][name] for head in heads])
      color, hatch = styles[i % len(styles)]
      axes.barh(
        heads,
        share,
        left=left,
        color=color,
        hatch=hatch,
        edgecolor="white",
        label=name,
      )
      left += share
    axes.set(title=kind, xlabel="queries (%)", xlim=(0, 100))
  grid[0].invert_yaxis()
  handles, labels = grid[0].get_legend_handles_labels()
  figure.legend(handles, labels, loc="outside upper center", ncols=3)
  return figure


def accuracy_by_shots(
  curves: Mapping[str, Mapping[str, Mapping[int, tuple[float, float]]]],
) -> Figure:
  """Accuracy against the number of examples of a new class.

  Args:
    curves: metric -> head -> shots -> (accuracy, half the width of its
      interval), both in [0, 1].
  """
  figure = Figure(figsize=(9, 4), layout="constrained")
  grid = figure.subplots(1, len(curves), squeeze=False)[0]
  for axes, (metric, by_head) in zip(grid, curves.items(), strict=True):
    for i, (head, by_shots) in enumerate(by_head.items()):
      shots = sorted(by_shots)
      mean, error = 100 * np.array([by_shots[k] for k in shots]).T
      axes.errorbar(shots, mean, yerr=error, label=head, **line_style(i))
    axes.set(title=metric, xlabel="shots", ylim=PERCENT)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
  grid[0].set_ylabel("accuracy (%)")
  handles, labels = grid[0].get_legend_handles_labels()
  figure.legend(handles, labels, loc="outside right center")
  return figure


def heat_maps(
  matrices: Mapping[str, np.ndarray], xlabel: str, ylabel: str
) -> Figure:
  """Matrices side by side on one colour scale; small ones show their numbers.

  Args:
    matrices: title -> matrix; all have the same number of rows.
    xlabel: what a column is.
    ylabel: what a row is.
  """
  arrays = [np.asarray(matrix) for matrix in matrices.values()]
  rows, columns = len(arrays[0]), sum(array.shape[1] for array in arrays)
  cell = min(0.42, 8 / columns, 4 / rows)
  figure = Figure(
    figsize=(1.2 + 0.5 * len(arrays) + cell * columns, 1 + cell * rows),
    layout="constrained",
  )
  grid = figure.subplots(
    1,
    len(arrays),
    sharey=True,
    squeeze=False,
    width_ratios=[array.shape[1] for array in arrays],
  )[0]
  limit = max(*(float(np.abs(array).max()) for array in arrays), 1e-6)
  for axes, title, array in zip(grid, matrices, arrays, strict=True):
    image = axes.imshow(array, vmin=-limit, vmax=limit, **_SIGNED)
    axes.set(xlabel=xlabel, xticks=[], yticks=[])
    axes.set_title(title, fontsize=9)
    if cell > 0.4:
      for i, j in np.argwhere(array):
        x = array[i, j]
        color = "white" if abs(x) > 0.6 * limit else "black"
        axes.text(
          j, i, f"{x:z.1f}", color=color, ha="center", va="center", fontsize=7
        )
  grid[0].set_ylabel(ylabel)
  figure.colorbar(image, ax=grid, label="entry", shrink=0.9)
  return figure


def images(groups: Mapping[str, np.ndarray]) -> Figure:
  """Rows of small images, one per group.

  Args:
    groups: title -> [n height width], the same n for all.
  """
  columns = len(next(iter(groups.values())))
  figure = Figure(
    figsize=(2 + 0.7 * columns, 0.7 * len(groups)), layout="constrained"
  )
  grid = figure.subplots(len(groups), columns, squeeze=False)
  for row, (title, group) in zip(grid, groups.items(), strict=True):
    for axes, image in zip(row, group, strict=True):
      axes.imshow(image, cmap="Greys")
      axes.set(xticks=[], yticks=[])
    row[0].set_ylabel(title, rotation=0, ha="right", va="center")
  return figure


def curves(
  panels: Mapping[str, Mapping[str, Mapping[int | float, float]]],
  xlabel: str,
  ylabel: str,
  log: str = "",
) -> Figure:
  """Lines in panels side by side, with the same axes and one legend.

  Args:
    panels: title -> name of a line -> x -> y; the lines of all panels are the
      same.
    xlabel: the x label of all panels.
    ylabel: the y label of all panels.
    log: which axes are logarithmic: "", "x", "y" or "xy".
  """
  figure = Figure(figsize=(3 + 3 * len(panels), 3.2), layout="constrained")
  grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
  for axes, (title, lines) in zip(grid, panels.items(), strict=True):
    for i, (name, line) in enumerate(lines.items()):
      every = max(1, len(line) // 12)
      x, y = list(line), list(line.values())
      axes.plot(x, y, label=name, markevery=every, **line_style(i))
    axes.set(title=title, xlabel=xlabel)
    if "x" in log:
      axes.set_xscale("log", base=2)
      axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    if "y" in log:
      axes.set_yscale("log")
    axes.grid(color=GREY, alpha=0.3)
  grid[0].set_ylabel(ylabel)
  handles, labels = grid[0].get_legend_handles_labels()
  figure.legend(handles, labels, loc="outside right center")
  return figure


def _label_tokens(axes, symbols, fontsize):
  """Names the columns; names that are wider than a column stand upright."""
  style = {"fontsize": fontsize, "family": "monospace"}
  if any(len(symbol) > 1 for symbol in symbols):
    style |= {"fontsize": fontsize - 1, "rotation": 90}
  axes.set_xticks(range(len(symbols)), symbols, **style)


def line_style(i: int) -> dict[str, str]:
  """The style of line i, distinct even without colour."""
  return {
    "color": COLORS[i % len(COLORS)],
    "marker": _MARKERS[i % len(_MARKERS)],
    "linestyle": ("-", "--", ":")[i % 3],
  }
