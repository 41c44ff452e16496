"""BigBird attention (Zaheer et al. 2020): global, window and random blocks.

The first and the last block of real tokens see and are seen by all. Every
other block sees itself, the blocks beside it and a few random ones, which
differ between heads and are chosen once for all inputs.
"""

import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from nam_jax.baselines.efficient import blocks
from nam_jax.layers.attention_layer import AttentionLayer
from nam_jax.layers.shapes import Mask


def bigbird_attention(
  query: Float[Array, "b s h k"],
  key: Float[Array, "b s h k"],
  value: Float[Array, "b s h v"],
  *,
  mask: Mask | None = None,
  dropout_rng: jax.Array | None = None,
  dropout_rate: float = 0.0,
  block_size: int = 64,
  num_rand_blocks: int = 3,
  seed: int = 0,
) -> Float[Array, "b s h v"]:
  """Softmax attention by blocks, at a cost linear in the length.

  Sequences of at most 4 + num_rand_blocks blocks get full attention. Which
  blocks are last and which are random depends on the real tokens, never on the
  padding after them.

  Args:
    query: queries.
    key: keys.
    value: values.
    mask: True = real token; without any, all outputs are zero.
    dropout_rng: for dropout of the weights; None for none.
    dropout_rate: the fraction of weights to drop.
    block_size: tokens per block.
    num_rand_blocks: number of random blocks that a block sees, drawn from all;
      the Long Range Arena draws them from the first 1,024 tokens.
    seed: decides which blocks are the random ones.
  """
  s, h = query.shape[1:3]
  real = blocks.real_tokens(mask, query)
  if s <= (4 + num_rand_blocks) * block_size:
    return blocks.masked_attention(
      query, key, value, real[:, None, None], dropout_rng, dropout_rate
    )
  rng, global_rng = blocks.split_rng(dropout_rng)
  every = key[:, None], value[:, None], real[:, None, None, None]
  query, key, value, real = (
    blocks.split(x, block_size) for x in (query, key, value, real)
  )
  place = jnp.arange(real.shape[1])[None]
  last = jnp.max(jnp.where(real.any(-1), place, 0), axis=1)
  ends = jnp.stack([jnp.zeros_like(last), last], axis=1)  # [b 2]
  order = random_order(seed, h, place.size)
  chosen, exists = _random_blocks(last, order, num_rand_blocks)
  outputs = blocks.block_attention(
    query,
    _global_keys(key, value, real, ends),
    _window_keys(key, value, real, last),
    _random_keys(key, value, real, chosen, exists),
    dropout_rng=rng,
    dropout_rate=dropout_rate,
  )
  of_ends = blocks.masked_attention(
    _pick(query, ends), *every, global_rng, dropout_rate
  )
  return blocks.join(_put(outputs, of_ends, ends), s)


def _pick(x, index):
  """Blocks of each sequence: x [b z c ...], index [b ...] -> [b ... c ...]."""
  return jax.vmap(lambda x, index: x[index])(x, index)


def _put(x, new, index):
  """x [b z c ...] with the blocks at index [b 2] set to new [b 2 c ...]."""
  place = jnp.arange(x.shape[1])[None]
  for i in range(2):
    here = (place == index[:, i, None])[..., None, None, None]
    x = jnp.where(here, new[:, i, None], x)
  return x


def random_order(seed: int, h: int, z: int) -> np.ndarray:
  """Random numbers [h z z]: a block prefers the blocks with the largest.

  Those of the first blocks do not depend on z, and so not on padding.
  """
  rows = [
    np.random.default_rng((seed, head, block)).random(z, np.float32)
    for head in range(h)
    for block in range(z)
  ]
  return np.reshape(rows, (h, z, z))


def _random_blocks(last, order, number):
  """Blocks [b h z number] neither global nor adjacent; whether they exist."""
  place = jnp.arange(order.shape[-1])
  apart = jnp.abs(place[:, None] - place[None]) > 1
  inner = (place[None] > 0) & (place[None] < last[:, None])
  candidates = inner[:, None, None] & apart[None, None]  # [b 1 z z]
  order = jnp.where(candidates, jnp.asarray(order)[None], -1)
  order, chosen = jax.lax.top_k(order, number)
  return chosen, order >= 0


def _global_keys(key, value, real, ends):
  """The first and the last block, which all blocks see."""
  b, _, c = real.shape
  key, value, real = (_pick(x, ends) for x in (key, value, real))
  return blocks.Keys(
    *(blocks.join(x, 2 * c)[:, None] for x in (key, value)),
    real.reshape(b, 1, 1, 1, 2 * c),
  )


def _window_keys(key, value, real, last):
  """Each block and its neighbours, except global ones."""
  place = jnp.arange(real.shape[1])[None]
  inner = (place > 0) & (place < last[:, None])
  real = blocks.neighbours(real & inner[..., None])
  return blocks.Keys(
    blocks.neighbours(key), blocks.neighbours(value), real[:, :, None, None]
  )


def _random_keys(key, value, real, chosen, exists):
  """The chosen blocks [b h z number] of each head."""
  b, h, z, number = chosen.shape
  size = number * real.shape[-1]

  def of_each_head(x):  # [b z c h k] -> [b z t h k]
    x = jax.vmap(_pick, in_axes=(3, 1), out_axes=4)(x, chosen)
    return x.reshape(b, z, size, h, x.shape[-1])

  real = _pick(real, chosen) & exists[..., None]  # [b h z number c]
  allowed = real.reshape(b, h, z, 1, size).swapaxes(1, 2)
  return blocks.Keys(of_each_head(key), of_each_head(value), allowed)


class BigBirdAttention(AttentionLayer):
  """Multi-head BigBird attention with the interface of `SelfAttention`.

  The parameters are `query`, `key`, `value` and `out`. Padded tokens are never
  attended to. Layers with different names have different random blocks.

  Attributes:
    dropout_rate: applied to the attention weights; none in Long Range Arena.
    block_size: tokens per block.
    num_rand_blocks: number of random blocks that a block sees.
    seed: changes the random blocks of all layers.
  """

  block_size: int = 64
  num_rand_blocks: int = 3
  seed: int = 0

  def attend(self, x, mask, train):
    query, key, value = self.heads(x, "query", "key", "value")
    return bigbird_attention(
      query,
      key,
      value,
      mask=mask,
      block_size=self.block_size,
      num_rand_blocks=self.num_rand_blocks,
      seed=zlib.crc32("/".join(self.path).encode()) + self.seed,
      dropout_rng=self.dropout_rng(train),
      dropout_rate=self.dropout_rate,
    )
