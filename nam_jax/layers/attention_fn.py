"""Linear-cost attention functions for flax's own multi-head attention layers.

`nn.MultiHeadDotProductAttention(attention_fn=nam_attention_fn)` and
`nnx.MultiHeadAttention(attention_fn=nam_attention_fn)` replace the softmax by a
memory, `linear_attention_fn` by the Linear Transformer. The mask's shape
decides the cost:

  None, or [b 1 1 t]   hides keys; the cost is linear in the sequence length
  [b 1|h s t]          any pattern, exact, by all pairs of tokens: quadratic

Keys and values that no query may see, and queries that may see no key, can hold
anything, NaN included.

Neither has attention weights. Dropout therefore drops what a token writes, for
every reader; a bias, which is added to weights, is an error, as is sow_weights.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Bool, DTypeLike, Float

from nam_jax.ops import linear_attention, masks, normalize, outer_product

AttentionFn = Callable[..., Float[Array, "b s h v"]]


def make_attention_fn(all_pairs: AttentionFn, by_memory: AttentionFn):
  """An `attention_fn` from a quadratic and a linear form of one attention.

  Args:
    all_pairs: (query, key, value, mask [b #h s t]) -> outputs.
    by_memory: (query, key, value, key_mask [b t] or None, causal) -> outputs.
  """

  def attention_fn(
    query: Float[Array, "b s h k"],
    key: Float[Array, "b t h k"],
    value: Float[Array, "b t h v"],
    bias: Array | None = None,
    mask: Bool[Array, "#b #h #s t"] | None = None,
    broadcast_dropout: bool = True,
    dropout_rng: jax.Array | None = None,
    dropout_rate: float = 0.0,
    deterministic: bool = True,
    dtype: DTypeLike | None = None,
    precision: jax.lax.PrecisionLike = None,
    module: nn.Module | None = None,
    is_causal: bool = False,
  ) -> Float[Array, "b s h v"]:
    """Attention with the signature that flax's layers call."""
    for name, given in (("bias", bias), ("precision", precision)):
      if given is not None:
        raise ValueError(f"{name} is not supported here, got {given!r}")
    if module is not None:
      raise ValueError(
        "sow_weights=True is not supported here: there are no attention"
        " weights to record"
      )
    if mask is not None:
      masks.check_mask(mask, mask.shape)
    if dtype is not None:
      query, key, value = (a.astype(dtype) for a in (query, key, value))
    if dropout_rate > 0 and not deterministic:
      value = _drop(value, dropout_rate, dropout_rng, broadcast_dropout)
    if mask is None or mask.shape[1:3] == (1, 1):
      if mask is not None:
        mask = jnp.broadcast_to(mask[:, 0, 0], key.shape[:2])
      return by_memory(query, key, value, mask, is_causal)
    (b, s), t = query.shape[:2], key.shape[1]
    mask = jnp.broadcast_to(mask, (b, mask.shape[1], s, t))
    if is_causal:
      mask = mask & jnp.tri(s, t, dtype=bool)[None, None]
    seen, sees = jnp.any(mask, axis=(1, 2)), jnp.any(mask, axis=(1, 3))
    key, value = masks.hide(key, seen), masks.hide(value, seen)
    return all_pairs(masks.hide(query, sees), key, value, mask)

  return attention_fn


def _drop(value, rate, rng, broadcast):
  b, t, h, _ = value.shape
  shape = (1, t, 1, 1) if broadcast else (b, t, h, 1)
  keep = jax.random.bernoulli(rng, 1 - rate, shape)
  return jnp.where(keep, value / (1 - rate), 0)


def _nam_all_pairs(query, key, value, mask):
  query, key = normalize.unit(query), normalize.unit(key)
  weights = jnp.einsum("bshk,bthk->bhst", query, key)
  weights = jnp.where(mask, weights, 0)
  return jnp.einsum("bhst,bthv->bshv", weights, value)


def _nam_by_memory(query, key, value, key_mask, causal):
  key, value = masks.hide(key, key_mask), masks.hide(value, key_mask)
  if causal:
    return outer_product.outer_product_attention(query, key, value, causal=True)
  M = outer_product.outer_product_memory(key, value)
  return outer_product.read_all(M, query).astype(value.dtype)


def _linear_all_pairs(query, key, value, mask):
  phi = linear_attention.phi
  weights = jnp.einsum("bshk,bthk->bhst", phi(query), phi(key))
  weights = jnp.where(mask, weights, 0)
  total = jnp.sum(weights, axis=-1, keepdims=True)
  weights = (weights / (total + linear_attention.EPSILON)).astype(value.dtype)
  return jnp.einsum("bhst,bthv->bshv", weights, value)


def _linear_by_memory(query, key, value, key_mask, causal):
  return linear_attention.linear_attention(
    query, key, value, key_mask=key_mask, causal=causal
  )


nam_attention_fn = make_attention_fn(_nam_all_pairs, _nam_by_memory)
linear_attention_fn = make_attention_fn(_linear_all_pairs, _linear_by_memory)
