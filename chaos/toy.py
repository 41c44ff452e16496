"""A small problem for the training engine: is a sum of numbers positive?"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from command_line import tool
from nam_jax import training
from nam_jax.training import classification, fingerprint

NUM_STEPS = 48
_WIDTH = 8


class _Network(nn.Module):
  @nn.compact
  def __call__(self, inputs, mask, train=False):
    x = jnp.where(mask, inputs, 0)
    x = nn.Dropout(0.1, deterministic=not train)(x)
    return nn.Dense(2)(nn.relu(nn.Dense(16)(x)))


class _Rows:
  """Random access to fixed rows."""

  def __init__(self, seed, count):
    rng = np.random.default_rng(seed)
    self._inputs = rng.normal(size=(count, _WIDTH)).astype(np.float32)
    self._mask = rng.random((count, _WIDTH)) > 0.2
    sums = (self._inputs * self._mask).sum(axis=1)
    self._labels = (sums > 0).astype(np.int32)

  def __len__(self):
    return len(self._labels)

  def __getitem__(self, i):
    return {
      "inputs": self._inputs[i],
      "mask": self._mask[i],
      "label": self._labels[i],
    }

  @property
  def content(self):
    return self._labels, self._inputs, self._mask


def main(argv: Sequence[str], usage: str = "") -> None:
  """Trains, or tests, in the folder that argv names."""
  parser = tool.make_parser(usage, "python -m chaos.train_toy")
  parser.add_argument("workdir", type=Path, help="folder of the run")
  parser.add_argument("--test_only", action="store_true", help="do not train")
  options = parser.parse_args(argv[1:])
  training.connect()
  print("connected", flush=True)
  run(options.workdir, options.test_only)


def run(workdir: Path, test_only: bool = False) -> None:
  """A whole run, as the experiments do it: train, test the best, save."""
  config = training.TrainConfig(
    num_steps=NUM_STEPS,
    batch_size=16,
    learning_rate=0.02,
    schedule="warmup_cosine",
    warmup_steps=4,
    # What is logged, evaluated and saved at different steps.
    log_every=3,
    eval_every=7,
    checkpoint_every=2,
    # The worst state counts as the best, so that an early one is kept.
    selection_metric="loss",
    selection_mode="max",
  )
  model = _Network()
  train, test = _Rows(0, 100), _Rows(1, 50)
  known = fingerprint.make(
    {"train": train.content, "test": test.content}, {"toy.txt": 1234}
  )
  first = train[0]

  def init_fn(key):
    return model.init(key, first["inputs"][None], first["mask"][None])

  eval_step = training.make_eval_step(
    classification.make_metric_fn(model), config
  )

  def evaluate(state):
    batches = training.eval_batches(test, config.batch_size)
    return training.mean_metrics(eval_step, state, map(training.place, batches))

  if not test_only:
    loss_fn = classification.make_loss_fn(model)
    training.fit(config, workdir, init_fn, loss_fn, train, evaluate, known)
  # What counts is what can be read again.
  fitted = training.load(config, workdir, init_fn, known)
  training.write_results(
    workdir,
    {
      "step": int(fitted.state.step),
      "state": _digest(fitted.state),
      "best_step": int(fitted.best.step),
      "best": evaluate(fitted.best),
    },
  )


def _digest(state):
  """One number for all bits of a state."""
  leaves = jax.tree.leaves(jax.device_get(state))
  return hashlib.sha256(b"".join(x.tobytes() for x in leaves)).hexdigest()
