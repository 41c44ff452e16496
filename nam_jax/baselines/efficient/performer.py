"""Performer attention (Choromanski et al. 2021): features for linear cost.

Positive features φ of queries and keys replace the softmax, so that keys and
values add up to one matrix per head:

  o_s = φ(q_s) Σ_t φ(k_t) v_tᵀ / φ(q_s) Σ_t φ(k_t)

The two layers differ in φ: `GeneralizedPerformer` takes relu(x) + ε, and
`SoftmaxPerformer` random features that estimate the softmax (FAVOR+).

There are no attention weights. Dropout therefore drops what a token writes, for
every reader.
"""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Bool, Float

from nam_jax.baselines.efficient import layer_rng
from nam_jax.layers.attention_layer import AttentionLayer
from nam_jax.ops import precision

# Avoids dividing by zero for a query whose features match no key's.
EPSILON = 1e-6


def kernel_attention(
  phi_q: Float[Array, "b s h m"],
  phi_k: Float[Array, "b t h m"],
  value: Float[Array, "b t h v"],
  *,
  mask: Bool[Array, "b t"] | None = None,
) -> Float[Array, "b s h v"]:
  """The mean of the values, weighted by the products of positive features.

  Padded keys write nothing; without any real key the outputs are zero.

  Args:
    phi_q: features of the queries.
    phi_k: features of the keys.
    value: values; the outputs have their dtype.
    mask: True = real key.
  """
  if mask is not None:
    phi_k = jnp.where(mask[..., None, None], phi_k, 0)
  memory = jnp.einsum("bthm,bthv->bhmv", phi_k, value.astype(phi_k.dtype))
  o = jnp.einsum("bshm,bhmv->bshv", phi_q, memory)
  z = jnp.einsum("bshm,bhm->bsh", phi_q, jnp.sum(phi_k, axis=1))
  return (o / jnp.where(z > 0, z, 1)[..., None]).astype(value.dtype)


def random_directions(
  normal: Float[Array, "2 g k k"], count: int, ortho_scaling: float = 0.0
) -> Float[Array, "{count} k"]:
  """Random vectors, orthogonal to each other in groups of k.

  Args:
    normal: independent normal numbers; see `normal_shape`.
    count: number of vectors.
    ortho_scaling: 0 for the random lengths of normal vectors, 1 for the length
      sqrt(k).
  """
  k = normal.shape[-1]
  q, r = jnp.linalg.qr(normal[0])
  # Without the signs, some directions would never occur.
  q = q * jnp.sign(jnp.diagonal(r, axis1=1, axis2=2))[:, None]
  directions = jnp.swapaxes(q, 1, 2).reshape(-1, k)[:count]
  if ortho_scaling:
    return directions * k**0.5
  lengths = jnp.linalg.norm(normal[1].reshape(-1, k)[:count], axis=1)
  return directions * lengths[:, None]


def normal_shape(count: int, k: int) -> tuple[int, int, int, int]:
  """How many normal numbers `count` random directions of width k need."""
  return (2, -(-count // k), k, k)


def softmax_features(
  query: Float[Array, "b s h k"],
  key: Float[Array, "b t h k"],
  directions: Float[Array, "m k"],
  *,
  mask: Bool[Array, "b t"] | None = None,
) -> tuple[Float[Array, "b s h m"], Float[Array, "b t h m"]]:
  """Features whose products are exp(q k / sqrt(k)) on average (lemma 1).

  exp(ω x − |x|² / 2) for each direction ω. The largest of each query, and the
  largest of all real keys of a sequence, is scaled to one; this cancels out in
  `kernel_attention`.
  """
  k_exponents = _exponents(key, directions)
  if mask is not None:
    k_exponents = jnp.where(mask[..., None, None], k_exponents, -jnp.inf)
  return (
    _scaled_exp(_exponents(query, directions), axis=3),
    _scaled_exp(k_exponents, axis=(1, 3)),
  )


def _exponents(x, directions):
  x = precision.widen(x) * x.shape[-1] ** -0.25
  half_square = jnp.sum(x * x, axis=-1, keepdims=True) / 2
  return jnp.einsum("bshk,mk->bshm", x, directions) - half_square


def _scaled_exp(x, axis):
  top = jax.lax.stop_gradient(jnp.max(x, axis=axis, keepdims=True))
  return jnp.exp(x - jnp.where(jnp.isfinite(top), top, 0)) + EPSILON


class _Performer(AttentionLayer):
  """What both layers share; they add `_features`."""

  def attend(self, x, mask, train):
    query, key, value = self.heads(x, "query", "key", "value")
    phi_q, phi_k = self._features(query, key, mask, train)
    dropout = nn.Dropout(self.dropout_rate, broadcast_dims=(-1,))
    value = dropout(value, deterministic=not train)
    return kernel_attention(phi_q, phi_k, value, mask=mask)


class GeneralizedPerformer(_Performer):
  """Attention by the features relu(x) + kernel_epsilon.

  Attributes:
    dropout_rate: applied to what the tokens write; none in Long Range Arena.
    dtype: used in the projections; sums are float32 or wider.
    kernel_epsilon: the smallest value of a feature.
  """

  kernel_epsilon: float = 1e-3

  def _features(self, query, key, mask, train):
    del mask, train  # tokens are independent, nothing is random
    wide = precision.accumulator(query.dtype)
    return (nn.relu(x.astype(wide)) + self.kernel_epsilon for x in (query, key))


class SoftmaxPerformer(_Performer):
  """Attention by random features that estimate the softmax (FAVOR+).

  Each layer has its own random directions, fixed by its place in the model.

  Attributes:
    dropout_rate: applied to what the tokens write; none in Long Range Arena.
    dtype: used in the projections; sums are float32 or wider.
    nb_features: random features per head.
    ortho_scaling: 0 for directions of random length, 1 for equal lengths.
    redraw_features: in training, draw new directions in every call, from the
      rng `dropout`; otherwise use the layer's own.
    seed: changes the layer's own directions.
  """

  nb_features: int = 256
  ortho_scaling: float = 0.0
  redraw_features: bool = True
  seed: int = 0

  def __post_init__(self):
    if self.ortho_scaling not in (0, 1):
      raise ValueError(f"ortho_scaling={self.ortho_scaling} must be 0 or 1")
    super().__post_init__()

  def _features(self, query, key, mask, train):
    shape = normal_shape(self.nb_features, query.shape[-1])
    if train and self.redraw_features:
      normal = jax.random.normal(self.make_rng("dropout"), shape)
    else:
      rng = layer_rng.layer_rng(self, self.seed)
      normal = jnp.asarray(rng.normal(size=shape), jnp.float32)
    directions = random_directions(normal, self.nb_features, self.ortho_scaling)
    return softmax_features(query, key, directions, mask=mask)


# Under the names used in the Long Range Arena's configs.
PERFORMERS = {"generalized": GeneralizedPerformer, "softmax": SoftmaxPerformer}
