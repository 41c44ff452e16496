"""Longformer attention (Beltagy et al. 2020): a sliding window, global tokens.

Every token sees the window around it and the global tokens, which are the first
of the sequence. Global tokens see all tokens, through their own projections.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from nam_jax.baselines.efficient import blocks
from nam_jax.layers.attention_layer import AttentionLayer
from nam_jax.layers.shapes import Mask


def sliding_window_attention(
  query: Float[Array, "b s h k"],
  key: Float[Array, "b s h k"],
  value: Float[Array, "b s h v"],
  *,
  mask: Mask | None = None,
  sliding_window_size: int = 512,
  num_global: int = 0,
  dropout_rng: jax.Array | None = None,
  dropout_rate: float = 0.0,
) -> Float[Array, "b s h v"]:
  """Softmax attention of every token to a window and to the first tokens.

  The cost is linear in the length: blocks of half a window see their
  neighbours.

  Args:
    query: queries.
    key: keys.
    value: values.
    mask: True = real token; a token that sees none outputs zero.
    sliding_window_size: number w of tokens that a token sees: w // 2 after it,
      itself, and the rest before it.
    num_global: number of leading tokens that every token sees.
    dropout_rng: for dropout of the weights; None for none.
    dropout_rate: the fraction of weights to drop.
  """
  if sliding_window_size < 1:
    raise ValueError(
      f"sliding_window_size must be at least 1, got {sliding_window_size}"
    )
  s, g = query.shape[1], num_global
  after = sliding_window_size // 2
  before = sliding_window_size - after - 1
  c = max(before, after, 1)
  if s <= 3 * c:  # three blocks or fewer: all pairs of tokens cost no more
    c, first, surroundings = s, 0, lambda x: x
  else:
    first, surroundings = -c, blocks.neighbours
  real = blocks.real_tokens(mask, query)
  in_window = surroundings(blocks.split(real & (np.arange(s) >= g)[None], c))
  distance = np.arange(first, c - first)[None] - np.arange(c)[:, None]  # [c t]
  pattern = (distance >= -before) & (distance <= after)
  window = blocks.Keys(
    surroundings(blocks.split(key, c)),
    surroundings(blocks.split(value, c)),
    in_window[:, :, None, None] & jnp.asarray(pattern)[None, None, None],
  )
  front = blocks.Keys(
    key[:, None, :g], value[:, None, :g], real[:, None, None, None, :g]
  )
  outputs = blocks.block_attention(
    blocks.split(query, c),
    *([window, front] if g else [window]),
    dropout_rng=dropout_rng,
    dropout_rate=dropout_rate,
  )
  return blocks.join(outputs, s)


class LongformerAttention(AttentionLayer):
  """Multi-head Longformer attention with the interface of `SelfAttention`.

  The parameters are `query`, `key`, `value` and `out`; with global tokens also
  `query_global`, `key_global` and `value_global`. Padded tokens are never
  attended to.

  Attributes:
    sliding_window_size: number of tokens that a token sees.
    num_global: number of global tokens at the front of the sequence; none by
      default, as in the Long Range Arena, not even for a CLS token.
  """

  sliding_window_size: int = 512
  num_global: int = 0

  def attend(self, x, mask, train):
    query, key, value = self.heads(x, "query", "key", "value")
    rng, global_rng = blocks.split_rng(self.dropout_rng(train))
    outputs = sliding_window_attention(
      query,
      key,
      value,
      mask=mask,
      sliding_window_size=self.sliding_window_size,
      num_global=self.num_global,
      dropout_rng=rng,
      dropout_rate=self.dropout_rate,
    )
    if self.num_global:
      first = self._global_outputs(x, mask, global_rng)
      rest = outputs[:, self.num_global :]
      outputs = jnp.concatenate([first, rest], axis=1)
    return outputs

  def _global_outputs(self, x, mask, rng):
    """What the global tokens see, [b g h v]."""
    front = x[:, : self.num_global]
    (query,) = self.heads(front, "query_global")
    key, value = self.heads(x, "key_global", "value_global")
    real = blocks.real_tokens(mask, x)[:, None, None]
    return blocks.masked_attention(
      query, key, value, real, rng, self.dropout_rate
    )
