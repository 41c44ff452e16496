"""Loops over tokens in segments, and the memory at any token of one.

A hand-written backward pass needs the memory M_t before every token. The
forward pass keeps the one at the start of each segment, M. Inside it

  M_t = M + sum_(i<t) u_i k_i^T,   M_t^T w = M^T w + sum_(i<t) (u_i . w) k_i,

so M_t is never formed. Nothing is subtracted: a value that is a million times
as large as the others costs no digits of what was in the memory before it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from nam_jax.ops import undo

# About the width of a head: more would cost more than the memory itself.
LENGTH = 16


def split(tokens, real: Bool[Array, "s b"] | None):
  """Arrays [s ...] as segments [z c ...], and which tokens are real.

  The last segment is padded with zeros, which are not real tokens.
  """
  s, b = jax.tree.leaves(tokens)[0].shape[:2]
  if real is None and s % _count(s, LENGTH):
    real = jnp.ones((s, b), bool)
  return jax.tree.map(lambda a: _cut(a, LENGTH), (tokens, real))


def join(tokens, s: int):
  """The first s tokens of all segments, [s ...]."""
  return jax.tree.map(lambda a: lax.collapse(a, 0, 2)[:s], tokens)


def split_rows(tokens, length: int):
  """Arrays [b s ...] as segments [z c b ...] of up to so many tokens.

  The last segment is padded with zeros.
  """
  return jax.tree.map(lambda a: _cut(jnp.moveaxis(a, 1, 0), length), tokens)


def join_rows(tokens, s: int):
  """The first s tokens of all segments, [b s ...]."""
  return jax.tree.map(lambda a: jnp.moveaxis(a, 0, 1), join(tokens, s))


def _count(s, length):
  return max(1, -(-s // length))


def _cut(array, length):
  s = len(array)
  segments = _count(s, length)
  array = jnp.pad(array, [(0, -s % segments)] + [(0, 0)] * (array.ndim - 1))
  return array.reshape(segments, len(array) // segments, *array.shape[1:])


def before(c: int, reverse: bool, dtype) -> Float[Array, "c c"]:
  """For each token of a segment, one for those that come before it."""
  tri = jnp.tri(c, k=-1, dtype=dtype)
  return tri.T if reverse else tri


class Writes(NamedTuple):
  """The memory M at the start of a segment, and what the segment writes."""

  M: Float[Array, "b h v k"]
  u: Float[Array, "b h c v"]
  k: Float[Array, "b h c k"]

  def along(self, before: Float[Array, " c"], v: undo.Column) -> undo.Row:
    """M_t^T v, given which tokens come before t."""
    weights = before[None, None] * undo.at(self.u, v)
    return undo.along(self.M, v) + undo.along(self.k, weights)

  def at(self, before: Float[Array, " c"], k: undo.Row) -> undo.Column:
    """M_t k, likewise."""
    weights = before[None, None] * undo.at(self.k, k)
    return undo.at(self.M, k) + undo.along(self.u, weights)


def writes(
  M: undo.Memory, u: Float[Array, "c b h v"], k: Float[Array, "c b h k"]
) -> Writes:
  """The writes u_i k_i^T of a segment that starts with M."""
  operands = Writes(M, jnp.moveaxis(u, 0, 2), jnp.moveaxis(k, 0, 2))
  return lax.optimization_barrier(operands)  # not computed again at each token
