"""Reformer attention (Kitaev et al. 2020): attend within a hash bucket.

Queries are their own keys. Tokens are sorted by a random hash that similar
queries are likely to share, and the sorted sequence is cut into chunks. Each
token attends to its own chunk and the one before it: linear cost, apart from
the sort.

As in the authors' own code, keys have unit length, and a token attends to
itself only where it sees no other. The Long Range Arena's code does neither; it
multiplies scores by sqrt(k), attends to padding, has no output projection, and
cuts the sequence into n_buckets chunks, whatever `chunk_len` is.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from nam_jax.baselines.efficient import blocks, layer_rng
from nam_jax.layers.attention_layer import AttentionLayer
from nam_jax.layers.shapes import Mask
from nam_jax.ops import normalize, precision

# The score of a token to itself: below all others, above that of padding.
SELF = -1e5


def lsh_attention(
  query: Float[Array, "b s h k"],
  value: Float[Array, "b s h v"],
  rotations: Float[Array, "r k n"],
  *,
  mask: Mask | None = None,
  chunk_len: int = 10,
  dropout_rng: jax.Array | None = None,
  dropout_rate: float = 0.0,
) -> Float[Array, "b s h v"]:
  """Attention among chunks of tokens, sorted by each of r hashes.

  Args:
    query: queries; as unit vectors, also the keys.
    value: values; the outputs have their dtype.
    rotations: the hash of a query is the index of the largest of its n
      products and their n negatives.
    mask: True = real token. Padded tokens come last and are never seen; their
      own outputs are arbitrary but finite.
    chunk_len: tokens per chunk.
    dropout_rng: for dropout of the weights; None for none.
    dropout_rate: the fraction of weights to drop.
  """
  b, s, h, _ = query.shape
  real = jnp.repeat(blocks.real_tokens(mask, query), h, axis=0)
  query, value = (
    jnp.moveaxis(x, 2, 1).reshape(b * h, s, x.shape[-1]) for x in (query, value)
  )
  rngs = None
  if dropout_rng is not None:
    rngs = jax.random.split(dropout_rng, len(rotations))
  one_round = functools.partial(
    _round, query, value, real, chunk_len, dropout_rate
  )
  outputs, totals = jax.vmap(one_round)(rotations, rngs)
  share = jax.nn.softmax(totals, axis=0)
  outputs = jnp.einsum("rns,rnsv->nsv", share, outputs)
  outputs = jnp.moveaxis(outputs.reshape(b, h, *outputs.shape[1:]), 1, 2)
  return outputs.astype(value.dtype)


def _round(query, value, real, chunk_len, dropout_rate, rotation, rng):
  """Outputs [n s v] by one hash, and the log of their summed weights [n s]."""
  s = query.shape[1]
  c = min(chunk_len, s)
  wide = precision.accumulator(query.dtype)
  query, value = query.astype(wide), value.astype(wide)
  order = jnp.argsort(_buckets(query, real, rotation), axis=1)

  def chunks(x):
    return blocks.split(_take(x, order), c)

  keys = _with_previous(chunks(normalize.unit(query)))
  scores = jnp.einsum("nzck,nztk->nzct", chunks(query), keys)
  itself = jnp.eye(c, 2 * c, c, dtype=bool)[None, None]
  visible = _with_previous(chunks(real))[:, :, None]
  scores = blocks.hide(jnp.where(itself, SELF, scores), visible)
  weights = blocks.masked_softmax(scores, rng, dropout_rate)
  values = _with_previous(chunks(value))
  outputs = jnp.einsum("nzct,nztv->nzcv", weights, values)
  totals = jax.nn.logsumexp(scores, axis=-1)
  back = jnp.argsort(order, axis=1)
  return tuple(_take(blocks.join(x, s), back) for x in (outputs, totals))


def _buckets(query, real, rotation):
  """The hash of each query [n s]; padding has the greatest."""
  rotated = jnp.einsum("nsk,km->nsm", query, rotation.astype(query.dtype))
  both = jnp.concatenate([rotated, -rotated], axis=-1)
  return jnp.where(real, jnp.argmax(both, axis=-1), both.shape[-1])


def _take(x, order):
  """The tokens of x [n s ...] in the given order [n s]."""
  return jax.vmap(lambda x, order: x[order])(x, order)


def _with_previous(x):
  """Each chunk of x [n z c ...] with the one before it, [n z 2c ...]."""
  before = jnp.concatenate([jnp.zeros_like(x[:, :1]), x[:, :-1]], axis=1)
  return jnp.concatenate([before, x], axis=2)


class ReformerAttention(AttentionLayer):
  """Multi-head attention by locality-sensitive hashing.

  The parameters are `query`, which makes the keys too, `value` and `out`. Each
  layer has its own hashes, fixed by its place in the model. Padding never
  changes the output of a real token.

  Attributes:
    dropout_rate: applied to the attention weights; none in Long Range Arena.
    dtype: used in the projections; attention is float32 or wider.
    chunk_len: tokens per chunk.
    n_hashes: number of hashes; their results are combined.
    n_buckets: number of values of a hash, even.
    seed: changes the hashes.
  """

  chunk_len: int = 10
  n_hashes: int = 1
  n_buckets: int = 10
  seed: int = 0

  def __post_init__(self):
    if self.n_buckets < 2 or self.n_buckets % 2:
      raise ValueError(f"n_buckets={self.n_buckets} must be even")
    if self.n_hashes < 1:
      raise ValueError(f"n_hashes={self.n_hashes} must be positive")
    super().__post_init__()

  def attend(self, x, mask, train):
    query, value = self.heads(x, "query", "value")
    shape = (self.n_hashes, query.shape[-1], self.n_buckets // 2)
    rotations = layer_rng.layer_rng(self, self.seed).normal(size=shape)
    return lsh_attention(
      query,
      value,
      jnp.asarray(rotations, jnp.float32),
      mask=mask,
      chunk_len=self.chunk_len,
      dropout_rng=self.dropout_rng(train),
      dropout_rate=self.dropout_rate,
    )
