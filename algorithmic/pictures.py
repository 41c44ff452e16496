"""Pictures: accuracy by length and tape heads of a run; curves of recall."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import linen as nn

from algorithmic import data
from algorithmic.tasks.task import Task
from nam_jax import training

# Digits of the samples whose heads are drawn: a length trained on, and not.
_DIGITS = 6, 14


def save(
  workdir: Path,
  task: Task,
  model: nn.Module,
  state: training.TrainState,
  results: dict[str, Any],
) -> None:
  """Writes the pictures; says so if matplotlib is missing."""
  try:
    from nam_jax import viz
  except ImportError:
    print("no pictures: they need matplotlib (pip install matplotlib)")
    return
  figure = viz.accuracy_by_length(
    {int(d): accuracy for d, accuracy in results["by_length"].items()},
    trained_length=data.PROTOCOLS[results["protocol"]].splits["train"].high,
    title=f"{results['task']}, {results['model']}",
  )
  figure.savefig(workdir / "accuracy_by_length.png", dpi=150)
  for digits in _DIGITS:
    heads, symbols = heads_on_tape(task, model, state, digits)
    if heads is not None:
      figure = viz.tape_heads(heads, symbols)
      figure.savefig(workdir / f"heads_{digits}_digits.png", dpi=150)


def save_recall(
  file: Path, found: Mapping[tuple[str, str], Sequence[Sequence[float]]]
) -> None:
  """Draws accuracy against the number of pairs, a panel for each task.

  Args:
    file: where to.
    found: (row, task) -> for every seed, accuracies with 1, 2, 3 pairs ...
  """
  from nam_jax import viz

  rows = {row: None for row, _ in found}
  panels = {
    task: {row: _by_pairs(found.get((row, task), ())) for row in rows}
    for task in {task: None for (_, task), runs in found.items() if runs}
  }
  if not panels:
    print("no picture: no run of recall is finished")
    return
  figure = viz.curves(panels, "pairs", "accuracy (%)", log="x")
  file.parent.mkdir(parents=True, exist_ok=True)
  figure.savefig(file, dpi=110)


def _by_pairs(seeds):
  """Number of pairs -> accuracy in percent, averaged over the seeds."""
  return {
    n + 1: 100 * float(np.mean(accuracies))
    for n, accuracies in enumerate(zip(*seeds, strict=True))
  }


def heads_on_tape(
  task: Task, model: nn.Module, state: training.TrainState, digits: int
) -> tuple[np.ndarray | None, list[str]]:
  """Heads [m s 2 h n] and symbols [s] of one sample; None without a tape."""
  rng = np.random.default_rng(0)
  sample = task.sample(rng, np.array([digits]), shift=False)
  variables = jax.device_get({"params": state.params, **state.extra})
  apply = jax.jit(lambda *inputs: model.apply(*inputs, mutable="intermediates"))
  _, sown = apply(variables, sample.inputs, sample.mask)
  core = sown.get("intermediates", {}).get("core", {})
  heads = [part["heads"][0] for part in core.values() if "heads" in part]
  symbols = [task.symbols[token] for token in sample.inputs[0]]
  return np.concatenate(heads) if heads else None, symbols
