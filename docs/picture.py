"""Draws the README's picture from a run: python -m docs.picture RUN.

  python train_algorithmic.py --sweep=20,40,80
  python -m docs.picture runs/palin-nam_tm --out=docs/images/turing_machine.png

Left, one tape of the second NAM Turing machine while it reverses a number that
is longer than those it was trained on; right, how many numbers of each length
it gets right.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithmic import data, run
from command_line import tool
from nam_jax import training, viz


def clearest_tape(
  experiment: run.Experiment, digits: int
) -> tuple[np.ndarray, list[str]]:
  """Heads [s 2 n] of the tape whose heads are sharpest, and the tokens."""
  task = experiment.task
  rng = np.random.default_rng(0)
  sample = task.sample(rng, np.array([digits]), shift=False)
  params = run.load(experiment).best.params
  _, sown = experiment.test_model.apply(
    {"params": params}, sample.inputs, sample.mask, mutable="intermediates"
  )
  machine = sown["intermediates"]["core"]["second_machine"]
  heads = np.asarray(machine["heads"][0][0])
  tape = np.abs(heads).max(axis=-1).mean(axis=(0, 1)).argmax()
  return heads[:, :, tape], [task.symbols[t] for t in sample.inputs[0]]


def draw_heads(grid: Sequence[Axes], heads: np.ndarray, symbols: list[str]):
  """Where the write head and the read head are; cell 0 is in the middle."""
  n = heads.shape[-1]
  half = n // 2
  for axes, kind, name in zip(grid, (1, 0), ("write", "read"), strict=True):
    image = axes.imshow(
      np.roll(heads[:, kind], half, axis=-1).T,
      cmap="PuOr_r",
      vmin=-1,
      vmax=1,
      aspect="auto",
      interpolation="nearest",
      extent=(-0.5, len(symbols) - 0.5, n - half - 0.5, -half - 0.5),
    )
    axes.set(ylabel="cell", title=f"{name} head")
  grid[-1].set_xticks(range(len(symbols)), symbols, family="monospace")
  grid[-1].set_xlabel("token: a number of digits, then masks (M) to fill")
  return image


def draw_accuracy(axes: Axes, by_length: dict[int, float]) -> None:
  """Sequence accuracy; lengths that were not trained are shaded."""
  digits = sorted(by_length)
  percent = [100 * by_length[d] for d in digits]
  axes.plot(digits, percent, color=viz.BLUE, marker="o")
  trained = data.SPLITS["train"].high + 0.5
  axes.axvspan(trained, max(digits) + 2, color=viz.GREY, alpha=0.25)
  axes.text(trained + 1, 4, "longer than any\ntraining sample")
  axes.set(
    xlabel="digits",
    ylabel="numbers reversed without a mistake (%)",
    xlim=(min(digits) - 1, max(digits) + 2),
    ylim=(-3, 103),
    title="trained on 1 to 10 digits",
  )


def picture(folder: Path, digits: int) -> Figure:
  """The whole picture of the run in a folder."""
  config = json.loads((folder / "config.json").read_text())
  config = training.from_config_dict(config, run.AlgorithmicConfig)
  experiment = run.make_experiment(config, str(folder))
  results = json.loads((folder / "results.json").read_text())
  by_length = {
    int(d): accuracy["sequence_accuracy"]
    for d, accuracy in results["by_length"].items()
  }
  figure = Figure(figsize=(10, 4), layout="constrained")
  left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
  grid = left.subplots(2, 1, sharex=True)
  image = draw_heads(grid, *clearest_tape(experiment, digits))
  left.colorbar(image, ax=grid, label="head (1: just on this cell)")
  left.suptitle(f"one tape while the machine reverses {digits} digits")
  draw_accuracy(right.subplots(), by_length)
  return figure


def main(argv: Sequence[str] | None = None) -> None:
  """Draws what the arguments ask for."""
  parser = tool.make_parser(__doc__, "python -m docs.picture")
  parser.add_argument("run", type=Path, help="folder of a run of palin:nam_tm")
  parser.add_argument("--digits", type=int, default=14)
  parser.add_argument("--out", type=Path, default=Path("turing_machine.png"))
  options = parser.parse_args(argv)
  if not (options.run / "results.json").exists():
    parser.exit(2, f"error: {options.run} holds no finished run\n")
  options.out.parent.mkdir(parents=True, exist_ok=True)
  picture(options.run, options.digits).savefig(options.out, dpi=110)
  print(f"written to {options.out}")


if __name__ == "__main__":
  main()
