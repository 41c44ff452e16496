"""One update and one evaluation batch, compiled.

The script provides the mathematics:

  loss_fn(params, extra, batch, key) -> (loss_sum, weight), (metrics, extra)
  metric_fn(params, extra, batch) -> metrics

where `metrics` maps names to (sum, weight) pairs, `extra` holds variables that
are not trained (BatchNorm's statistics) and `key` is new at each step. The
gradient is that of loss_sum / weight, both summed over the whole batch: all
devices and all accumulated parts.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jaxtyping import Array, PyTree

from nam_jax.training import devices
from nam_jax.training.config import TrainConfig
from nam_jax.training.state import TrainState

Batch = Mapping[str, Array]
Metrics = dict[str, tuple[Array, Array]]
LossFn = Callable[..., tuple[tuple[Array, Array], tuple[Metrics, PyTree]]]
MetricFn = Callable[..., Metrics]
TrainStep = Callable[[TrainState, Batch], tuple[TrainState, Metrics]]
EvalStep = Callable[[TrainState, Batch], Metrics]


def make_train_step(
  loss_fn: LossFn, optimizer: optax.GradientTransformation, config: TrainConfig
) -> jax.stages.Wrapped:
  """(state, batch) -> (state, metrics); the given state's memory is reused.

  The metrics are those of `loss_fn`, the loss, and the gradient's global norm
  before clipping.
  """

  def loss_sum(params, extra, batch, key):
    params, batch = _cast((params, batch), config.compute_dtype)
    (total, weight), (metrics, new_extra) = loss_fn(params, extra, batch, key)
    new_extra = jax.tree.map(
      lambda new, x: new.astype(x.dtype), new_extra, extra
    )
    return total.astype(jnp.float32), (weight, metrics, new_extra)

  def train_step(state, batch):
    def add_part(carry, part):
      gradient, extra = carry
      (total, (weight, metrics, extra)), part_gradient = jax.value_and_grad(
        loss_sum, has_aux=True
      )(state.params, extra, *part)
      gradient = jax.tree.map(jnp.add, gradient, part_gradient)
      return (gradient, extra), metrics | {"loss": (total, weight)}

    key = jax.random.fold_in(jax.random.key(config.seed), state.step)
    parts = _split(batch, config.accumulate_steps)
    keys = jax.random.split(key, config.accumulate_steps)
    zeros = jax.tree.map(jnp.zeros_like, state.params)
    start = (zeros, state.extra)
    if config.accumulate_steps == 1:  # convolutions in loops are slow on a CPU
      only = jax.tree.map(lambda x: x[0], (parts, keys))
      (gradient, extra), metrics = add_part(start, only)
    else:
      (gradient, extra), metrics = lax.scan(add_part, start, (parts, keys))
      metrics = jax.tree.map(lambda x: x.sum(axis=0), metrics)
    weight = metrics["loss"][1]
    weight = jnp.where(weight > 0, weight, 1)
    gradient = jax.tree.map(lambda g: g / weight.astype(g.dtype), gradient)
    metrics["grad_norm"] = (optax.tree.norm(gradient), jnp.ones(()))
    updates, opt_state = optimizer.update(
      gradient, state.opt_state, state.params
    )
    params = optax.apply_updates(state.params, updates)
    return TrainState(state.step + 1, params, opt_state, extra), metrics

  return jax.jit(
    train_step, donate_argnums=0, out_shardings=devices.replicated()
  )


def make_eval_step(metric_fn: MetricFn, config: TrainConfig) -> EvalStep:
  """(state, batch) -> metrics, computed in the dtype that training uses."""

  def eval_step(state, batch):
    params, batch = _cast((state.params, batch), config.compute_dtype)
    return metric_fn(params, state.extra, batch)

  return jax.jit(eval_step, out_shardings=devices.replicated())


def mean_metrics(
  eval_step: EvalStep, state: TrainState, batches: Iterable[Batch]
) -> dict[str, Any]:
  """Each metric's sum over all batches divided by its weight.

  A metric whose pairs are vectors (accuracy by length, say) gives a list;
  where the weight is 0 the mean is NaN.
  """
  totals = None
  for batch in batches:
    sums = jax.device_get(eval_step(state, batch))
    sums = jax.tree.map(lambda x: np.asarray(x, np.float64), sums)
    totals = sums if totals is None else jax.tree.map(np.add, totals, sums)
  if totals is None:
    raise ValueError("there is no batch to evaluate")
  return {
    name: np.where(
      weight > 0, total / np.maximum(weight, 1e-300), np.nan
    ).tolist()
    for name, (total, weight) in totals.items()
  }


def _cast(tree, dtype):
  """Floating-point leaves in the compute type."""
  return jax.tree.map(
    lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x,
    tree,
  )


def _split(batch, parts):
  """Rows i, i + parts, ... form part i, so that no row changes its device."""
  return jax.tree.map(
    lambda x: x.reshape(-1, parts, *x.shape[1:]).swapaxes(0, 1), batch
  )
