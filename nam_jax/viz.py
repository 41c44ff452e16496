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
