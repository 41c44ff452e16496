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
  zero = _zero(trees)

  def one(array):
    if not jnp.issubdtype(array.dtype, jnp.floating):
      return array
    return array + zero.astype(array.dtype)

  return jax.tree.map(one, trees)


def zeros(shapes, like):
  """Zeros in the shapes of a tree, varying as the leaves of another do."""
  zero = _zero(like)
  return jax.tree.map(
    lambda a: jnp.zeros_like(zero, a.dtype, shape=a.shape), shapes
  )


def _zero(tree):
  leaves = jax.tree.leaves(tree)
  zeros = [jnp.zeros_like(a, jnp.float32, shape=()) for a in leaves]
  return sum(zeros[1:], zeros[0])
