"""Batches in blocks that fit into a CPU's cache.

A loop over time passes over its memories at every step. On a CPU it is much
faster to run it for a few samples after the other, whose memories stay in the
cache, than for all of them at once. Elsewhere a batch is one block.

Block i of z holds the samples i, i + z, i + 2 z ...: a batch that is spread
over devices then has a part of every block on each of them.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Shaped

_CACHE = 2**19  # bytes of memories in a block


def count(batch: int, sample_bytes: int) -> int:
  """How many blocks to make of a batch: a divisor of it.

  Args:
    batch: Number of samples.
    sample_bytes: What the loop's memories take for one sample.
  """
  if batch == 0 or jax.default_backend() != "cpu":
    return 1
  least = min(batch, -(-batch * sample_bytes // _CACHE))
  best = next(z for z in range(max(1, least), batch + 1) if batch % z == 0)
  # Blocks far smaller than the cache cost more than they save.
  return best if best <= 4 * least else 1


def split(
  array: Shaped[Array, "..."], blocks: int, axis: int = 0
) -> Shaped[Array, "z ..."]:
  """The blocks of an array whose batch axis is given, stacked in front."""
  shape = list(array.shape)
  shape[axis : axis + 1] = shape[axis] // blocks, blocks
  return jnp.moveaxis(array.reshape(shape), axis + 1, 0)


def join(array: Shaped[Array, "z ..."], axis: int = 0) -> Shaped[Array, "..."]:
  """Undoes `split`."""
  blocks, *shape = array.shape
  shape[axis] *= blocks
  return jnp.moveaxis(array, 0, axis + 1).reshape(shape)


def scan(step, starts, xs, reverse: bool = False):
  """`lax.scan` for every block, one after the other.

  Args:
    step: (state, x) -> (state, y), for one block.
    starts: The states before the first step, arrays [z ...].
    xs: What the steps are given, arrays [z s ...].
    reverse: Run from the last step to the first.

  Returns:
    The states after the last step, [z ...], and the ys, [z s ...].
  """
  z, s = jax.tree.leaves(xs)[0].shape[:2]

  def at(i, t):
    return jax.tree.map(lambda a: a[i, t], xs)

  def put(arrays, values, *index):
    def one(array, value):
      start = (*index, *[0] * value.ndim)
      value = value.reshape(*[1] * len(index), *value.shape)
      return lax.dynamic_update_slice(array, value, start)

    return jax.tree.map(one, arrays, values)

  def block(i, carry):
    def token(t, carry):
      state, ys = carry
      t = s - 1 - t if reverse else t
      state, y = step(state, at(i, t))
      return state, put(ys, y, i, t)

    ends, ys = carry
    start = jax.tree.map(lambda a: a[i], starts)
    state, ys = lax.fori_loop(0, s, token, (start, ys))
    return put(ends, state, i), ys

  def one(arrays, axes):
    return jax.tree.map(
      lambda a: jax.ShapeDtypeStruct(a.shape[axes:], a.dtype), arrays
    )

  _, y = jax.eval_shape(step, one(starts, 1), one(xs, 2))
  ys = jax.tree.map(lambda a: jnp.zeros((z, s, *a.shape), a.dtype), y)
  return lax.fori_loop(0, z, block, (starts, ys)) if s else (starts, ys)
