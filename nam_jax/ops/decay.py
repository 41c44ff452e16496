"""Decay inside a chunk of tokens: how much of a write is left when it is read.

What token j wrote has decayed by exp(l_(j+1) + ... + l_i) when token i reads
it, for the log decays l <= 0. The sum is never taken as a difference of two
cumulative sums, which would lose it where some decays are strong, and never
inverted, which would overflow. Instead tokens are halved again and again: for
i in the second half of a block and j in the first, the sum is that from the
middle to i plus that from j to the middle. Both are sums inside half a block,
and both factors are at most one.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from nam_jax.ops import triangular


class Level(NamedTuple):
  """Sums inside blocks of tokens; d is 1, or k for one decay per channel."""

  up_to: Float[Array, "*z n c d"]  # from the block's start, with the token
  after: Float[Array, "*z n c d"]  # to the block's end, without the token


def levels(log_decay: Float[Array, "*z c d"]) -> Iterator[Level]:
  """The sums for blocks of 1, 2, 4, ... tokens, c a power of two."""
  up_to = log_decay[..., None, :]
  after = jnp.zeros_like(up_to)
  yield Level(up_to, after)
  while up_to.shape[-3] > 1:
    first, second = triangular.pairs(up_to)
    early, late = triangular.pairs(after)
    early = early + second[..., -1:, :]
    second = second + first[..., -1:, :]
    up_to = jnp.concatenate([first, second], axis=-2)
    after = jnp.concatenate([early, late], axis=-2)
    yield Level(up_to, after)


def between(
  log_decay: Float[Array, "*z c 1"], diagonal: int
) -> Float[Array, "*z c c"]:
  """What is left at token i of what j <= i + diagonal wrote, else zero."""
  c = log_decay.shape[-2]
  lead = (None,) * (log_decay.ndim - 2)
  up_to = jnp.tri(c, dtype=bool)[lead]
  after = jnp.tri(c, k=-1, dtype=log_decay.dtype)
  # Row i has the decays up to i; the product adds those after j.
  rows = jnp.where(up_to, jnp.swapaxes(log_decay, -1, -2), 0)
  sums = jnp.einsum("...it,tj->...ij", rows, after, precision=triangular.EXACT)
  lower = jnp.tri(c, k=diagonal, dtype=bool)[lead]
  return jnp.where(lower, jnp.exp(sums), 0)


def channel_scores(
  rows: Float[Array, "*z c k"],
  columns: Float[Array, "*z c k"],
  log_decay: Float[Array, "*z c k"],
  precision: lax.PrecisionLike,
) -> Float[Array, "*z c c"]:
  """sum_k rows_ik columns_jk exp(l_(j+1)k + ... + l_ik) for j < i, or 0."""
  *halves, _ = levels(log_decay)
  scores = jnp.zeros((*rows.shape[:-1], 1, 1), rows.dtype)
  for up_to, after in halves:
    *lead, n, block, _ = up_to.shape
    shape = (*lead, n // 2, 2, block, rows.shape[-1])
    lower = rows.reshape(shape)[..., 1, :, :]
    lower = lower * jnp.exp(triangular.pairs(up_to)[1])
    upper = columns.reshape(shape)[..., 0, :, :]
    upper = upper * jnp.exp(triangular.pairs(after)[0])
    below = jnp.matmul(lower, jnp.swapaxes(upper, -1, -2), precision=precision)
    scores = triangular.join_blocks(scores, below)
  return scores[..., 0, :, :]
