"""Parameters of a layer as a table: names, shapes, and how they start.

A layer writes its table once, and computes with plain functions of a dict of
arrays. Linen and nnx modules differ only in how they declare the table.
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen import dtypes
from jaxtyping import Array, DTypeLike, Float

Initializer = Callable[..., Array]  # (key, shape, dtype) -> array


class Parameter(NamedTuple):
  """One array of a layer."""

  shape: tuple[int, ...]
  init: Initializer


Table = Mapping[str, Mapping[str, Parameter]]  # group, name
Params = Mapping[str, Mapping[str, Array]]


class Group(nn.Module):
  """Declares one group of a table in a linen module."""

  @nn.compact
  def __call__(self, group: Mapping[str, Parameter]) -> dict[str, Array]:
    """The arrays of the group."""
    return {
      name: jnp.asarray(self.param(name, p.init, p.shape, jnp.float32))
      for name, p in group.items()
    }


def dense(
  inputs: tuple[int, ...],
  outputs: tuple[int, ...],
  *,
  use_bias: bool,
  kernel_init: Initializer | None = None,
  bias_init: Initializer = nn.initializers.zeros,
) -> dict[str, Parameter]:
  """Kernel and bias of a projection, as in `nn.DenseGeneral`."""
  init = kernel_init or nn.initializers.xavier_uniform()
  flat = math.prod(inputs), math.prod(outputs)

  def start(key, shape, dtype):
    return init(key, flat, dtype).reshape(shape)

  group = {"kernel": Parameter((*inputs, *outputs), start)}
  return group | ({"bias": Parameter(outputs, bias_init)} if use_bias else {})


def project(
  group: Mapping[str, Array],
  x: Float[Array, "..."],
  dtype: DTypeLike | None,
  axes: int = 1,
) -> Float[Array, "..."]:
  """x W + b over the last axes of x, with the parameters of `dense`."""
  x, kernel, bias = dtypes.promote_dtype(
    x, group["kernel"], group.get("bias"), dtype=dtype
  )
  last = tuple(range(x.ndim - axes, x.ndim)), tuple(range(axes))
  y = jax.lax.dot_general(x, kernel, (last, ((), ())))
  if bias is None:
    return y
  return y + bias.reshape((1,) * (y.ndim - bias.ndim) + bias.shape)
