"""Linformer attention (Wang et al. 2020): keys and values of fixed number."""

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Bool, DTypeLike, Float

from nam_jax.baselines.efficient import blocks
from nam_jax.layers import projections


class LinformerAttention(nn.Module):
  """Multi-head attention to learned mixtures of all tokens.

  The call interface is that of `SelfAttention`. Besides `query`, `key`, `value`
  and `out`, the parameter `lr_kernel` [max_len low_rank_features] says how much
  each position adds to each of the mixtures, of keys and of values alike, for
  all heads. Padded tokens add nothing; the mixtures themselves have no mask.

  Attributes:
    num_heads: number of heads.
    max_len: largest length of a sequence, with its CLS token.
    qkv_dim: width of all heads together; the input's by default.
    dropout_rate: of the attention weights.
    use_bias: whether the four projections have biases.
    dtype: of the computation.
    low_rank_features: number of mixtures.
  """

  num_heads: int
  max_len: int
  qkv_dim: int | None = None
  dropout_rate: float = 0.0
  use_bias: bool = False
  dtype: DTypeLike | None = None
  low_rank_features: int = 16

  @nn.compact
  def __call__(
    self,
    x: Float[Array, "b s d"],
    *,
    mask: Bool[Array, "b s"] | None = None,
    train: bool = False,
  ) -> Float[Array, "b s d"]:
    """Attends from every token to the mixtures of real tokens."""
    blocks.check_length(x, self.max_len)
    query, key, value = projections.heads(self, x, "query", "key", "value")
    kernel = self.param(
      "lr_kernel",
      nn.initializers.xavier_uniform(),
      (self.max_len, self.low_rank_features),
    )
    kernel = kernel[: x.shape[1]].astype(key.dtype)
    real = blocks.real_tokens(mask, x)[..., None, None]
    key, value = (
      jnp.einsum("bthk,tn->bnhk", jnp.where(real, tokens, 0), kernel)
      for tokens in (key, value)
    )
    weights = blocks.masked_softmax(
      blocks.products(query, key),
      blocks.dropout_rng(self, train),
      self.dropout_rate,
    )
    outputs = blocks.mix(weights, value)
    return projections.output(self, outputs, x.shape[-1])
