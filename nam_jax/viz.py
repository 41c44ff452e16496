"""Pictures of results; needs matplotlib (pip install 'nam-jax[plot]').

Every function returns a `Figure` that belongs to no window: save it with
`figure.savefig("name.png")`, or show it as the last line of a notebook cell.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

# Told apart by people of all kinds of colour vision (Okabe & Ito 2008).
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
COLORS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "os^vD*PX"


def accuracy_by_length(
  by_length: Mapping[int, Mapping[str, float]],
  trained_length: int,
  title: str = "",
) -> Figure:
  """Sequence and token accuracy against the number of digits.

  Args:
    by_length: digits -> `sequence_accuracy` and `token_accuracy` in [0, 1].
    trained_length: most digits of a training sample; marked by a line.
    title: of the picture.
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
  axes.set(xlabel="digits", ylabel="accuracy (%)", ylim=(-3, 103), title=title)
  axes.xaxis.set_major_locator(MaxNLocator(integer=True))
  axes.legend(loc="lower left")
  return figure


def tape_heads(heads: np.ndarray, symbols: Sequence[str]) -> Figure:
  """Where the heads of NAM Turing machines are on their tapes.

  Args:
    heads: [m s 2 h n] of m machines at s tokens: read and write heads of h
      tapes with n cells.
    symbols: [s], how to write each token.
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
        cmap="PuOr_r",  # orange is positive, purple negative
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="nearest",
      )
      axes.set_xticks(range(s), symbols, fontsize=5, family="monospace")
      if tape == 0:
        name = ("read", "write")[kind]
        axes.set_ylabel(f"machine {machine + 1}\n{name} head\ncell")
      if row == 0:
        axes.set_title(f"tape {tape + 1}")
  figure.supxlabel("token")
  figure.colorbar(image, ax=grid, label="head")
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
      axes.errorbar(
        shots,
        mean,
        yerr=error,
        color=COLORS[i % len(COLORS)],
        marker=_MARKERS[i % len(_MARKERS)],
        linestyle=("-", "--", ":")[i % 3],
        label=head,
      )
    axes.set(title=metric, xlabel="shots", ylabel="accuracy (%)")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
  grid[-1].legend()
  return figure
