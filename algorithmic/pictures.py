"""The pictures beside results.json: accuracy by length, heads on the tape."""

import functools
from typing import Any

import jax
import numpy as np

from algorithmic import data
from algorithmic.run import Experiment
from nam_jax import training

# Digits of the samples whose heads are drawn: one trained, one not.
_DIGITS = 6, 14


def save(
  experiment: Experiment, state: training.TrainState, results: dict[str, Any]
) -> None:
  """Writes the pictures; says so if matplotlib is missing."""
  try:
    from nam_jax import viz
  except ImportError:
    print("no pictures: they need matplotlib (pip install matplotlib)")
    return
  figure = viz.accuracy_by_length(
    {int(d): accuracy for d, accuracy in results["by_length"].items()},
    trained_length=data.SPLITS["train"].high,
    title=f"{results['task']}, {results['model']}",
  )
  figure.savefig(experiment.workdir / "accuracy_by_length.png", dpi=150)
  for digits in _DIGITS:
    heads, symbols = _heads(experiment, state, digits)
    if heads is not None:
      figure = viz.tape_heads(heads, symbols)
      figure.savefig(experiment.workdir / f"heads_{digits}_digits.png", dpi=150)


def _heads(experiment, state, digits):
  """Heads [m s 2 h n] and symbols [s] of one sample; None without a tape."""
  task, model = experiment.task, experiment.test_model
  rng = np.random.default_rng(0)
  sample = task.sample(rng, np.array([digits]), shift=False)
  variables = jax.device_get({"params": state.params, **state.extra})
  apply = jax.jit(functools.partial(model.apply, mutable="intermediates"))
  _, sown = apply(variables, sample.inputs, sample.mask)
  heads = sown.get("intermediates", {}).get("core", {}).get("heads")
  symbols = [task.symbols[token] for token in sample.inputs[0]]
  return None if heads is None else np.concatenate(heads), symbols
