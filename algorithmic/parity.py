"""Learns parity with and without negative eigenvalues, and draws the result.

  python -m algorithmic.parity --out=runs/parity.png

Two NAM-Transformers are trained on 3 to 40 bits, to say whether the number of
ones is odd, and tested on up to 256. One may erase with p_e up to 1, so that a
memory is at most forgotten; the other with p_e up to 2, so that it can change
its sign. This takes two minutes on two cores. Finished runs are not repeated.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from algorithmic import data, run
from command_line import record, tool

_CONFIG = (
  Path(__file__).resolve().parents[1]
  / "configs/algorithmic/state_tracking.py:parity,nam"
)
LIMITS = (1, 2)  # of p_e
_PROTOCOL = data.PROTOCOLS["state_tracking"]
# Lengths that make one point of the picture.
_BIN = 12


def main(argv: Sequence[str] | None = None) -> None:
  """Runs the command line."""
  parser = tool.make_parser(__doc__, "python -m algorithmic.parity")
  add = parser.add_argument
  add("--folder", type=Path, default=Path("runs/parity"), help="of both runs")
  add("--steps", type=int, default=500, help="updates of each run")
  add("--seed", type=int, default=0)
  add("--out", type=Path, help="picture (default: parity.png in the folder)")
  add("--json", type=record.table_file, help="file of tables to add to")
  tool.run(parser, _learn, argv)


def _learn(options):
  found = {limit: _train(options, limit) for limit in LIMITS}
  for limit, results in found.items():
    print(f"p_e up to {limit}: {', '.join(_accuracies(results).values())}")
  out = options.out or options.folder / "parity.png"
  out.parent.mkdir(parents=True, exist_ok=True)
  draw(found).savefig(out, dpi=110)
  print(f"written to {out}")
  if options.json:
    record.write_table(options.json, "parity", _table(options, found))


def _train(options, limit) -> dict[str, Any]:
  """The results of one run."""
  workdir = options.folder / f"p_e-up-to-{limit}"
  flags = {
    "num_steps": options.steps,
    "eval_every": max(1, options.steps // 2),
    "warmup_steps": options.steps // 10,
    "seed": options.seed,
    "model_kwargs.max_erase": limit,
  }
  run.main(
    [
      "train_algorithmic.py",
      f"--config={_CONFIG}",
      f"--workdir={workdir}",
      *(f"--config.{name}={value}" for name, value in flags.items()),
    ]
  )
  return json.loads((workdir / "results.json").read_text())


def draw(found: dict[int, dict[str, Any]]):
  """Accuracy by length; `found` has the results for each limit of p_e."""
  from nam_jax import viz

  lines = {
    f"$p_e$ up to {limit}": _by_bin(results["by_length"])
    for limit, results in found.items()
  }
  figure = viz.curves(
    {"parity, trained on 3 to 40 bits": lines}, "bits", "right answers (%)"
  )
  (axes,) = figure.axes
  longest = _PROTOCOL.splits["train"].high
  axes.axvspan(longest, _PROTOCOL.longest, color=viz.GREY, alpha=0.25)
  axes.text(longest + 6, 2, "longer than any training sample")
  axes.set(ylim=viz.PERCENT, xlim=(0, _PROTOCOL.longest + 4))
  figure.set_size_inches(7, 3.2)
  return figure


def _by_bin(by_length):
  """Middle of a bin -> accuracy in percent; a bin has a few lengths."""
  bins = {}
  for digits, accuracy in by_length.items():
    bins.setdefault(int(digits) // _BIN, []).append(accuracy)
  return {
    _BIN * number + (_BIN - 1) / 2: 100
    * fmean(accuracy["sequence_accuracy"] for accuracy in accuracies)
    for number, accuracies in bins.items()
  }


def _accuracies(results):
  names = {"id": "3 to 39 bits", "od": "40 to 256 bits"}
  return {
    title: f"{100 * results['splits'][split]['sequence_accuracy']:.1f}"
    for split, title in names.items()
  }


def _table(options, found):
  rows = [
    {
      "erase probability": f"up to {limit}",
      **_accuracies(results),
      "updates": f"{options.steps:,}",
      "time": f"{results['wall_seconds']:.0f} s",
    }
    for limit, results in found.items()
  ]
  return {
    "columns": list(rows[0]),
    "command": "python -m algorithmic.parity --out=docs/images/parity.png",
    "seeds": str(options.seed),
    "machine": record.machines(found.values()),
    **record.when(),
    "differs": "Right answers in percent; guessing gives 50. Two layers of"
    " width 64 with four heads, 111 thousand parameters.",
    "rows": rows,
  }


if __name__ == "__main__":
  main()
