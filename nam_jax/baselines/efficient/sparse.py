"""The fixed patterns of the Sparse Transformer (Child et al. 2019).

Every token sees the tokens before it in its own block and, of every block
before, the first token and the last `num_summary` ones: the union of the two
patterns of section 4.3 as the Long Range Arena merges them for all heads.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from nam_jax.baselines.efficient import blocks
from nam_jax.layers.shapes import Mask


def sparse_attention(
  query: Float[Array, "b s h k"],
  key: Float[Array, "b s h k"],
  value: Float[Array, "b s h v"],
  *,
  mask: Mask | None = None,
  block_size: int = 50,
  num_summary: int = 10,
  num_global: int = 0,
  dropout_rng: jax.Array | None = None,
  dropout_rate: float = 0.0,
) -> Float[Array, "b s h v"]:
  """Softmax attention in fixed patterns, causal if there are no global tokens.

  The cost is that of full attention times (num_summary + 1) / block_size, plus
  a part linear in the length.

  Args:
    query: queries.
    key: keys.
    value: values.
    mask: True = real token; a token that sees none outputs zero.
    block_size: tokens per block.
    num_summary: number of last tokens of a block that later blocks see, the
      paper's c.
    num_global: number of leading tokens that see and are seen by all; the
      blocks start after them. The Long Range Arena has 1 with a CLS token.
    dropout_rng: for dropout of the weights; None for none.
    dropout_rate: the fraction of weights to drop.
  """
  s, g = query.shape[1], num_global
  real = blocks.real_tokens(mask, query)
  rng, global_rng = blocks.split_rng(dropout_rng)
  groups = _fixed_patterns(
    *(blocks.split(x[:, g:], block_size) for x in (key, value, real)),
    num_summary,
  )
  if g:
    groups.append(
      blocks.Keys(
        key[:, None, :g], value[:, None, :g], real[:, None, None, None, :g]
      )
    )
  outputs = blocks.block_attention(
    blocks.split(query[:, g:], block_size),
    *groups,
    dropout_rng=rng,
    dropout_rate=dropout_rate,
  )
  outputs = blocks.join(outputs, s - g)
  if not g:
    return outputs
  first = blocks.masked_attention(
    query[:, :g], key, value, real[:, None, None], global_rng, dropout_rate
  )
  return jnp.concatenate([first, outputs], axis=1)


def _fixed_patterns(key, value, real, num_summary):
  """Keys of each block [b z c h k] and those that later blocks see."""
  b, z, c = real.shape
  causal = jnp.asarray(np.tri(c, dtype=bool))[None, None, None]
  own = blocks.Keys(key, value, real[:, :, None, None] & causal)
  place = np.arange(c)
  seen_later = np.flatnonzero((place == 0) | (place >= c - num_summary))

  def summary(x):  # [b z c ...] -> [b 1 t ...]
    x = x[:, :, seen_later]
    return x.reshape(b, 1, z * len(seen_later), *x.shape[3:])

  block = np.repeat(np.arange(z), len(seen_later))
  earlier = jnp.asarray(block[None] < np.arange(z)[:, None])  # [z t]
  allowed = summary(real) & earlier[None]
  return [
    own,
    blocks.Keys(summary(key), summary(value), allowed[:, :, None, None]),
  ]


def sparse_attention_fn(
  block_size: int = 50, num_summary: int = 10, num_global: int = 0
):
  """Sparse attention as the `attention_fn` of `SelfAttention`."""
  return blocks.as_attention_fn(
    sparse_attention,
    block_size=block_size,
    num_summary=num_summary,
    num_global=num_global,
  )
