"""Everything that changes during training, and its creation from a seed."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import struct, traverse_util
from jaxtyping import PyTree

from nam_jax.training import devices

# Folded into the seed's key for the parameters; steps fold in their number.
_INIT = 2**32 - 1

InitFn = Callable[[jax.Array], dict[str, Any]]


class TrainState(struct.PyTreeNode):
  """The step number also determines all random choices and the data."""

  step: PyTree  # updates made so far, int32 scalar
  params: PyTree  # what the optimiser updates
  opt_state: PyTree
  extra: PyTree  # other variables by collection: {"batch_stats": ...}


def _build(init_fn, optimizer, seed):
  key = jax.random.fold_in(jax.random.key(seed), _INIT)
  variables = dict(init_fn(key))
  params = variables.pop("params")
  return TrainState(
    step=jnp.zeros((), jnp.int32),
    params=params,
    opt_state=optimizer.init(params),
    extra=variables,
  )


def create(
  init_fn: InitFn, optimizer: optax.GradientTransformation, seed: int
) -> TrainState:
  """The state before the first step.

  Args:
    init_fn: key -> variables, `{"params": ...}` and any further collections;
      usually `lambda key: model.init(key, inputs)`.
    optimizer: from `schedules.make_optimizer`.
    seed: the run's seed.
  """
  return jax.jit(
    lambda: _build(init_fn, optimizer, seed),
    out_shardings=devices.replicated(),
  )()


def abstract(
  init_fn: InitFn, optimizer: optax.GradientTransformation, seed: int
) -> TrainState:
  """Shapes, types and placement of `create`'s result, without its values."""
  sharding = devices.replicated()
  return jax.tree.map(
    lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding),
    jax.eval_shape(lambda: _build(init_fn, optimizer, seed)),
  )


def parameter_count(params: PyTree) -> int:
  """How many numbers the optimiser updates."""
  return sum(math.prod(x.shape) for x in jax.tree.leaves(params))


def parameter_table(params: PyTree) -> str:
  """One line per parameter: name, shape, type, count; then the total."""
  flat = traverse_util.flatten_dict(params, sep="/")
  rows = [
    (name, str(x.shape), str(x.dtype), f"{math.prod(x.shape):,}")
    for name, x in flat.items()
  ]
  rows.append(("total", "", "", f"{parameter_count(params):,}"))
  widths = [max(len(row[i]) for row in rows) for i in range(4)]
  return "\n".join(
    f"{name:{widths[0]}}  {shape:{widths[1]}}  {dtype:{widths[2]}}"
    f"  {count:>{widths[3]}}"
    for name, shape, dtype, count in rows
  )
