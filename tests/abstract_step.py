"""A training step that is traced, but neither compiled nor run."""

import jax

from nam_jax import training
from nam_jax.training import state as state_lib


def take(config, init_fn, loss_fn, batch) -> state_lib.TrainState:
  """The state, whose shapes a step must keep; batch holds arrays or shapes."""
  optimizer = training.make_optimizer(config)
  step = training.make_train_step(loss_fn, optimizer, config)
  before = state_lib.abstract(init_fn, optimizer, config.seed)
  after, metrics = jax.eval_shape(step, before, batch)
  assert jax.tree.map(_kind, after) == jax.tree.map(_kind, before)
  assert {x.shape for x in jax.tree.leaves(metrics)} == {()}
  return after


def _kind(x):
  return x.shape, x.dtype
