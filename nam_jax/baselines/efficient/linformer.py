"""Linformer attention (Wang et al. 2020): a fixed number of keys and values."""

import jax.numpy as jnp
from flax import linen as nn

from nam_jax.baselines.efficient import blocks
from nam_jax.layers.attention_layer import AttentionLayer


class LinformerAttention(AttentionLayer):
  """Multi-head attention to learned mixtures of all tokens.

  The call interface is that of `SelfAttention`. Besides `query`, `key`, `value`
  and `out`, the parameter `lr_kernel` [max_len low_rank_features] says how much
  each position adds to each mixture, both of keys and of values, in all heads.
  Padded tokens add nothing; the mixtures themselves have no mask.

  Attributes:
    max_len: longest sequence, including its CLS token.
    low_rank_features: number of mixtures.
  """

  max_len: int
  low_rank_features: int = 16

  def attend(self, x, mask, train):
    blocks.check_length(x, self.max_len)
    query, key, value = self.heads(x, "query", "key", "value")
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
      blocks.products(query, key), self.dropout_rng(train), self.dropout_rate
    )
    return blocks.mix(weights, value)
