"""Memory tensors of any order (paper, section Possible Future Work).

The paper's document is a sum of sentence memories, each bound to a unit key,
and a sentence memory is a sum of word vectors bound to unit keys:

  D = sum_i S_i (x) k_i,   S_i = sum_j w_ij (x) k_ij

Reading contracts one level with one unit query. Keys and queries are given from
the outermost level inwards: the sentence first, then the word.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from nam_jax.ops.memory import Probability


class TensorMemory(NamedTuple):
  """A memory tensor: batch and value axes, then one axis per level.

  A new one for b documents of words of width v, sentence keys of width k_s and
  word keys of width k_w is `TensorMemory(jnp.zeros((b, v, k_w, k_s)))`. The
  outermost level is the last axis. Every operation takes any leading axes.
  """

  M: Float[Array, "*shape"]

  def read(
    self, *queries: Float[Array, "*b _"], p_r: Probability = 1.0
  ) -> Float[Array, "..."]:
    """Nested reads, one unit query per level; fewer queries return a memory.

    With one query a document gives a sentence memory [b, v, k_w], with two a
    word [b, v].
    """
    M = self.M
    for query in _levels(queries, M):
      q = query.reshape(_lead(query, M, 1) + query.shape[-1:])
      M = jnp.einsum("...k,...k->...", M, q)
    return _scaled(p_r, M)

  def write(
    self,
    value: Float[Array, "..."],
    *keys: Float[Array, "*b _"],
    p_w: Probability = 1.0,
    p_e: Probability = 1.0,
  ) -> "TensorMemory":
    """WR with one key per level: the value replaces what the keys held.

    The outer product of unit keys is a unit key itself, so reading with the
    same keys afterwards returns the value (Theorem 1), be it a vector under the
    keys of all levels or a whole sentence memory under one key.
    """
    u = _scaled(p_w, value) - _scaled(p_e, self.read(*keys))
    for key in reversed(_levels(keys, self.M)):
      k = key.reshape(_lead(key, u, 0) + key.shape[-1:])
      u = u[..., None] * k
    return TensorMemory(self.M + u)


def _levels(keys, M):
  if not 0 < len(keys) < M.ndim:
    raise ValueError(
      f"a memory of shape {M.shape} takes 1 to {M.ndim - 1} keys, one per"
      f" level, got {len(keys)}"
    )
  return list(keys)


def _lead(key, M, used):
  """The leading shape that lines a key [*b, k] up with M [*b, ...]."""
  middle = M.ndim - used - (key.ndim - 1)
  return key.shape[:-1] + (1,) * middle


def _scaled(p, x):
  p = jnp.asarray(p, x.dtype)
  return p.reshape(p.shape + (1,) * (x.ndim - p.ndim)) * x if p.ndim else p * x
