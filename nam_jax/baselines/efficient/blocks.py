"""What the efficient attentions share: blocks of tokens and a masked softmax.

Sequences of any length are cut into blocks of c tokens; the last one is padded.
Masks are True where a token is real.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Shaped

from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks, precision


def split(
  x: Shaped[Array, "b s *n"], size: int
) -> Shaped[Array, "b z {size} *n"]:
  """Blocks of `size` tokens, the last one padded with zeros (False)."""
  b, s, *rest = x.shape
  if size < min(s, 1):
    raise ValueError(f"a block must have at least one token, got {size}")
  z = -(-s // max(size, 1))
  x = jnp.pad(x, ((0, 0), (0, z * size - s), *[(0, 0)] * len(rest)))
  return x.reshape(b, z, size, *rest)


def join(x: Shaped[Array, "b z c *n"], s: int) -> Shaped[Array, "b {s} *n"]:
  """The first s tokens of the blocks, as one sequence."""
  b, z, c, *rest = x.shape
  return x.reshape(b, z * c, *rest)[:, :s]


def neighbours(x: Shaped[Array, "b z c *n"]) -> Shaped[Array, "b z t *n"]:
  """Each block between the ones before and after it, t = 3 c tokens.

  Beyond either end of the sequence are zeros (False).
  """
  end = jnp.zeros_like(x[:, :1])
  before = jnp.concatenate([end, x[:, :-1]], axis=1)
  after = jnp.concatenate([x[:, 1:], end], axis=1)
  return jnp.concatenate([before, x, after], axis=2)


def real_tokens(mask: Mask | None, x: Shaped[Array, "b s *n"]) -> Mask:
  """The mask, checked; without one, all tokens of x are real."""
  masks.check_mask(mask, x.shape[:2])
  return jnp.ones(x.shape[:2], bool) if mask is None else mask


def check_length(x: Tokens, max_len: int) -> None:
  """Raises if the sequence is longer than the layer's max_len positions."""
  if x.shape[1] > max_len:
    raise ValueError(f"max_len={max_len} is less than the length {x.shape[1]}")


def products(
  query: Float[Array, "*n s h k"], key: Float[Array, "*#n t h k"]
) -> Float[Array, "*n h s t"]:
  """Products of queries and keys over sqrt(k), in float32 or wider."""
  wide = precision.accumulator(query.dtype)
  scores = jnp.einsum(
    "...shk,...thk->...hst", query, key, preferred_element_type=wide
  )
  return scores * query.shape[-1] ** -0.5


def hide(
  scores: Float[Array, "*n"], allowed: Bool[Array, "*#n"]
) -> Float[Array, "*n"]:
  """Replaces scores that are not allowed with the lowest number."""
  return jnp.where(allowed, scores, jnp.finfo(scores.dtype).min)


def masked_softmax(
  scores: Float[Array, "*n t"],
  dropout_rng: jax.Array | None = None,
  dropout_rate: float = 0.0,
) -> Float[Array, "*n t"]:
  """Softmax over the scores that are not hidden; zeros where all are.

  With a key `dropout_rng`, each weight is dropped independently.
  """
  weights = jax.nn.softmax(scores, axis=-1)
  weights = jnp.where(scores > jnp.finfo(scores.dtype).min, weights, 0)
  if dropout_rng is None:
    return weights
  keep = jax.random.bernoulli(dropout_rng, 1 - dropout_rate, weights.shape)
  return jnp.where(keep, weights / (1 - dropout_rate), 0)


def mix(
  weights: Float[Array, "*n h s t"], value: Float[Array, "*#n t h v"]
) -> Float[Array, "*n s h v"]:
  """Sums the values by their weights."""
  weights = weights.astype(value.dtype)
  return jnp.einsum("...hst,...thv->...shv", weights, value)


def masked_attention(
  query: Float[Array, "*n s h k"],
  key: Float[Array, "*#n t h k"],
  value: Float[Array, "*#n t h v"],
  allowed: Bool[Array, "*#n #h #s #t"],
  dropout_rng: jax.Array | None = None,
  dropout_rate: float = 0.0,
) -> Float[Array, "*n s h v"]:
  """Softmax attention of every query to the keys that it may see.

  A query without any key outputs zero. Scores and weights are float32 or wider;
  the outputs have the dtype of `value`.
  """
  scores = hide(products(query, key), allowed)
  return mix(masked_softmax(scores, dropout_rng, dropout_rate), value)


class Keys(NamedTuple):
  """Keys, their values, and which query may see which key."""

  key: Float[Array, "b #z t h k"]
  value: Float[Array, "b #z t h v"]
  allowed: Bool[Array, "#b #z #h #c t"]


def block_attention(
  query: Float[Array, "b z c h k"],
  *groups: Keys,
  dropout_rng: jax.Array | None = None,
  dropout_rate: float = 0.0,
) -> Float[Array, "b z c h v"]:
  """One softmax of each block of queries over several groups of keys.

  A group has either keys for each block or, with z = 1, keys for all blocks.
  """
  parts = [hide(products(query, g.key), g.allowed) for g in groups]
  scores = jnp.concatenate(parts, axis=-1)
  weights = masked_softmax(scores, dropout_rng, dropout_rate)
  outputs: Any = 0
  start = 0
  for group in groups:
    end = start + group.key.shape[2]
    outputs = outputs + mix(weights[..., start:end], group.value)
    start = end
  return outputs


def split_rng(rng: jax.Array | None) -> tuple:
  """Two keys from one, for two draws; two Nones from None."""
  return (None, None) if rng is None else tuple(jax.random.split(rng))


def as_attention_fn(attention: Callable[..., Array], **options):
  """Makes an `attention_fn` for `SelfAttention` and flax's own layers.

  Args:
    attention: (query, key, value, *, mask [b s] or None, dropout_rng,
      dropout_rate, **options) -> outputs.
    **options: fixed arguments of `attention`.
  """
  attention = functools.partial(attention, **options)

  def attention_fn(
    query: Float[Array, "b s h k"],
    key: Float[Array, "b s h k"],
    value: Float[Array, "b s h v"],
    mask: Bool[Array, "#b _ _ s"] | None = None,
    dropout_rng: jax.Array | None = None,
    dropout_rate: float = 0.0,
    deterministic: bool = True,
  ) -> Float[Array, "b s h v"]:
    """Self-attention with those of flax's arguments that it supports."""
    if mask is not None:
      masks.check_mask(mask, mask.shape)
      if mask.shape[1:3] != (1, 1):
        raise ValueError(
          f"mask may hide only keys, with shape [b 1 1 s], got {mask.shape}"
        )
      mask = jnp.broadcast_to(mask[:, 0, 0], query.shape[:2])
    if deterministic or dropout_rate == 0:
      dropout_rng = None
    return attention(
      query,
      key,
      value,
      mask=mask,
      dropout_rng=dropout_rng,
      dropout_rate=dropout_rate,
    )

  return attention_fn
