"""Sinkhorn attention (Tay et al. 2020): attend to a second block.

Each token attends to the tokens of its own block and, separately, to those of
another one; the sum is its output. The other block is a mixture of all blocks,
position by position, with weights that a sorting net learns from the sum of the
block's keys.

The Long Range Arena's code adds up all blocks with equal weights, so its
sorting net has no effect, and puts every n-th token into a block, for n blocks.
"""

import jax.numpy as jnp
from jax.nn import logsumexp
from jaxtyping import Array, Bool, Float

from nam_jax.baselines.efficient import blocks
from nam_jax.layers.attention_layer import AttentionLayer
from nam_jax.ops import precision

# Which axes of the weights [z n] are normalised in turn: only what each block
# takes, or also what is taken from it (one Sinkhorn iteration).
SORT_AXES = {"softmax": (-1,), "sinkhorn": (-1, -2)}


def mixture(
  logits: Float[Array, "b h z n"],
  real: Bool[Array, "b z"],
  sort_activation: str = "softmax",
) -> Float[Array, "b h z n"]:
  """How much each of z blocks takes of each of the first n blocks.

  Args:
    logits: the weights' logits.
    real: which blocks have a real token; the others give and take nothing.
    sort_activation: "softmax" or "sinkhorn".
  """
  n = logits.shape[-1]
  allowed = (real[:, :, None] & real[:, None, :n])[:, None]
  x = blocks.hide(logits, allowed)
  for axis in SORT_AXES[sort_activation]:
    x = blocks.hide(x - logsumexp(x, axis=axis, keepdims=True), allowed)
  return jnp.exp(x)


class SinkhornAttention(AttentionLayer):
  """Multi-head attention to a token's own block and a mixture of blocks.

  The parameters are `query`, `key`, `value`, `out` and `sort`, the sorting net
  of all heads. A block without a real token is ignored, so padding at the end
  never changes the output of a real token. The cost is linear in the length
  beyond `max_num_blocks` blocks.

  Attributes:
    dtype: used in the computation; weights are float32 or wider.
    block_size: tokens per block.
    max_num_blocks: number of leading blocks that are mixed. Tokens of later
      blocks attend to the mixtures, but are not part of them.
    sort_activation: "softmax" or "sinkhorn".
  """

  block_size: int = 50
  max_num_blocks: int = 25
  sort_activation: str = "softmax"

  def __post_init__(self):
    if self.sort_activation not in SORT_AXES:
      raise ValueError(
        f"sort_activation must be one of {', '.join(SORT_AXES)},"
        f" got {self.sort_activation!r}"
      )
    super().__post_init__()

  def attend(self, x, mask, train):
    s = x.shape[1]
    real = blocks.real_tokens(mask, x)
    query, key, value = self.heads(x, "query", "key", "value")
    key, value = (jnp.where(real[..., None, None], a, 0) for a in (key, value))
    real, query, key, value = (
      blocks.split(a, min(self.block_size, s))
      for a in (real, query, key, value)
    )
    weights = self._sort(key, real)
    n = weights.shape[-1]
    mixed_key, mixed_value = (
      jnp.einsum("bhzn,bnchk->bzchk", weights.astype(a.dtype), a[:, :n])
      for a in (key, value)
    )
    mixed_real = jnp.any(real[:, :n], axis=1)[:, None]  # [b 1 c]
    rngs = blocks.split_rng(self.dropout_rng(train))

    def attend(key, value, real, rng):
      allowed = real[:, :, None, None]  # [b z 1 1 c]
      return blocks.masked_attention(
        query, key, value, allowed, rng, self.dropout_rate
      )

    own = attend(key, value, real, rngs[0])
    other = attend(mixed_key, mixed_value, mixed_real, rngs[1])
    return blocks.join(own + other, s)

  def _sort(self, key, real):
    """How much each block takes of the others, [b h z n]."""
    logits = self.dense(self.max_num_blocks, "sort")(jnp.sum(key, axis=2))
    z = key.shape[1]
    logits = jnp.swapaxes(logits, 1, 2)[..., :z]
    logits = precision.widen(logits)
    return mixture(logits, jnp.any(real, axis=2), self.sort_activation)
