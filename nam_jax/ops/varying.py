"""Arrays inside `jax.shard_map`, which tracks the devices they differ between.

A loop must carry what it started with, and a gradient written by hand must be
of the type of its operand. Both fail where some operands are the same on all
devices (parameters, a state of zeros) and others are not (tokens).
"""

import jax
import jax.numpy as jnp


def alike(*trees):
  """The same arrays, all varying over the devices that any of them varies over.

  The gradient of what was the same on all devices is the sum over them.
  """
  leaves = jax.tree.leaves(trees)
  zeros = [jnp.zeros_like(a, shape=(), dtype=jnp.float32) for a in leaves]
  zero = sum(zeros[1:], zeros[0])

  def one(array):
    if not jnp.issubdtype(array.dtype, jnp.floating):
      return array
    return array + zero.astype(array.dtype)

  return jax.tree.map(one, trees)
