"""Two-layer LSTM with attention, a baseline of the paper's Table 1."""

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import DTypeLike

from nam_jax.layers import lstm, self_attention
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks


class LSTMAttention(nn.Module):
  """Bidirectional LSTM, attention over its states, bidirectional LSTM.

  The second LSTM sees the states of the first and, with each, what its
  token attends to (after Bahdanau et al. 2015, with dot products).

  Attributes:
    features: width of one direction of the LSTMs; half the input's by default.
    num_heads: number of attention heads.
    dropout_rate: between the layers, and of the attention weights.
    dtype: used in the computation.
  """

  features: int | None = None
  num_heads: int = 1
  dropout_rate: float = 0.0
  dtype: DTypeLike | None = None

  @nn.compact
  def __call__(
    self, x: Tokens, *, mask: Mask | None = None, train: bool = False
  ) -> Tokens:
    """Encodes embedded tokens; padding never changes a real output."""
    masks.check_mask(mask, x.shape[:2])
    x = masks.hide(x, mask)
    d = x.shape[-1]
    features = self.features or d // 2
    dropout = nn.Dropout(self.dropout_rate, deterministic=not train)

    def encode(x, name):
      layer = lstm.LSTM(
        features, bidirectional=True, dtype=self.dtype, name=name
      )
      return dropout(layer(x, mask=mask)[0])

    attention = self_attention.SelfAttention(
      self.num_heads, dropout_rate=self.dropout_rate, dtype=self.dtype
    )
    states = encode(x, "encoder")
    attended = attention(states, mask=mask, train=train)
    states = encode(jnp.concatenate([states, attended], axis=-1), "decoder")
    return nn.Dense(d, dtype=self.dtype, name="output")(states)
