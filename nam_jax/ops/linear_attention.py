"""Linear Transformer attention (Katharopoulos et al. 2020), a baseline.

The softmax is replaced by a product of positive features φ(x) = elu(x) + 1, so
that keys and values add up to one k x v matrix per head. The causal form works
in chunks of tokens: attention inside a chunk, a sum over the chunks before it.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from nam_jax.ops import masks, precision

# Keeps the normaliser of a query without any key (or of vanishing features)
# away from zero; the same value as in the Long Range Arena.
EPSILON = 1e-6


def linear_attention(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b t h k"],
  v: Float[Array, "b t h v"],
  *,
  mask: Bool[Array, "b s"] | None = None,
  key_mask: Bool[Array, "b t"] | None = None,
  causal: bool = False,
  chunk_size: int = 64,
) -> Float[Array, "b s h v"]:
  """Returns o_s = φ(q_s) Σ_t φ(k_t) v_tᵀ / φ(q_s) Σ_t φ(k_t) (equations 4-6).

  Args:
    q: queries.
    k: keys; as many as the queries if `causal`.
    v: values.
    mask: True = real token, for self-attention: padded tokens are not
      attended to and their own outputs are zero.
    key_mask: the same for keys and values only, as in cross-attention.
    causal: sum over t <= s only, in memory linear in the length.
    chunk_size: tokens per chunk of the causal form.

  Returns:
    The outputs, in the dtype of `v`; all sums are float32.
  """
  s, t = q.shape[1], k.shape[1]
  if s != t and (causal or mask is not None):
    raise ValueError(
      f"causal and mask need as many keys as queries, got {t} and {s}; "
      "to mask keys alone, use key_mask"
    )
  masks.check_mask(mask, q.shape[:2])
  masks.check_mask(key_mask, k.shape[:2], "key_mask")
  q = masks.hide(q, mask)
  k, v = (masks.hide(masks.hide(x, mask), key_mask) for x in (k, v))
  phi_q, values = phi(q), precision.widen(v)
  phi_k = masks.hide(masks.hide(phi(k), mask), key_mask)  # φ(0) = 1
  if causal:
    o, z = _causal(phi_q, phi_k, values, chunk_size)
  else:
    memory = jnp.einsum("bthk,bthv->bhkv", phi_k, values)
    o = jnp.einsum("bshk,bhkv->bshv", phi_q, memory)
    z = jnp.einsum("bshk,bhk->bsh", phi_q, jnp.sum(phi_k, axis=1))
  o = (o / (z + EPSILON)[..., None]).astype(v.dtype)
  return masks.hide(o, mask)


def phi(x: Float[Array, "..."]) -> Float[Array, "..."]:
  """The positive features elu(x) + 1, in float32 or wider."""
  # exp(x) is elu(x) + 1 without the rounding to multiples of float32's epsilon.
  x = precision.widen(x)
  return jnp.where(x > 0, x + 1, jnp.exp(jnp.minimum(x, 0)))


def _causal(q, k, v, c):
  """Unnormalised outputs and normalisers of the positive features q and k."""
  s = q.shape[1]
  c = max(min(c, s), 1)
  z = -(-s // c)

  def chunks(x):
    x = jnp.pad(x, ((0, 0), (0, z * c - s), (0, 0), (0, 0)))
    return x.reshape(x.shape[0], z, c, *x.shape[2:])

  def before(x):  # sum over the chunks before each
    x = jnp.concatenate([jnp.zeros_like(x[:, :1]), x[:, :-1]], axis=1)
    return jnp.cumsum(x, axis=1)

  q, k, v = chunks(q), chunks(k), chunks(v)
  memory = before(jnp.einsum("bzchk,bzchv->bzhkv", k, v))
  weights = jnp.einsum("bzchk,bzthk->bzhct", q, k)
  weights = weights * jnp.tri(c, dtype=q.dtype)[None, None, None]
  o = jnp.einsum("bzhct,bzthv->bzchv", weights, v)
  o = o + jnp.einsum("bzchk,bzhkv->bzchv", q, memory)
  norm = jnp.einsum("bzhct->bzch", weights)
  norm = norm + jnp.einsum("bzchk,bzhk->bzch", q, before(jnp.sum(k, axis=2)))
  return (x.reshape(x.shape[0], z * c, *x.shape[3:])[:, :s] for x in (o, norm))
