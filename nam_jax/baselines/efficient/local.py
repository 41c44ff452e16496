"""Local attention: every token attends to the tokens of its own block."""

import jax
from jaxtyping import Array, Float

from nam_jax.baselines.efficient import blocks
from nam_jax.layers.shapes import Mask


def local_attention(
  query: Float[Array, "b s h k"],
  key: Float[Array, "b s h k"],
  value: Float[Array, "b s h v"],
  *,
  mask: Mask | None = None,
  block_size: int = 50,
  dropout_rng: jax.Array | None = None,
  dropout_rate: float = 0.0,
) -> Float[Array, "b s h v"]:
  """Softmax attention inside blocks of `block_size` consecutive tokens.

  The Long Range Arena's own code differs: its reshape puts every n-th token
  into a block, for n blocks. The cost is linear in the length.

  Args:
    query: queries.
    key: keys.
    value: values.
    mask: True = real token; a block without any outputs zero.
    block_size: tokens per block; the last block may be shorter.
    dropout_rng: for dropout of the weights; None for none.
    dropout_rate: the fraction of weights to drop.
  """
  s = query.shape[1]
  c = min(block_size, s)
  real = blocks.split(blocks.real_tokens(mask, query), c)
  query, key, value = (blocks.split(x, c) for x in (query, key, value))
  allowed = real[:, :, None, None]  # [b z 1 1 c]
  outputs = blocks.masked_attention(
    query, key, value, allowed, dropout_rng, dropout_rate
  )
  return blocks.join(outputs, s)


def local_attention_fn(block_size: int = 50):
  """Local attention as the `attention_fn` of `SelfAttention`."""
  return blocks.as_attention_fn(local_attention, block_size=block_size)
