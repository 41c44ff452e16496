"""Softmax self-attention, called like every other attention layer."""

import inspect
from collections.abc import Callable

from flax import linen as nn
from jaxtyping import Array, DTypeLike

from nam_jax.layers import checks
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks


class SelfAttention(nn.Module):
  """Multi-head self-attention; padded tokens are never attended to.

  The parameters are those of `nn.MultiHeadDotProductAttention`: `query`,
  `key`, `value` and `out`. Outputs of padded tokens are arbitrary but finite.

  Attributes:
    num_heads: number of heads.
    qkv_dim: width of all heads together; the input's by default.
    dropout_rate: applied to the attention weights.
    use_bias: whether the four projections have biases.
    dtype: used in the computation.
    mask_queries: also mask padded queries, so that they attend to all tokens
      equally, padding included, as in the Long Range Arena.
    attention_fn: as in `nn.MultiHeadDotProductAttention`. It must have
      parameters named `mask` and, for dropout, `dropout_rng`: flax passes only
      the arguments that a function names.
    hide_padding: set padded tokens to zero first, so that they may hold
      anything, NaN included. Without it they attend from what they hold, as in
      the Long Range Arena, where means include their outputs.
  """

  num_heads: int
  qkv_dim: int | None = None
  dropout_rate: float = 0.0
  use_bias: bool = False
  dtype: DTypeLike | None = None
  mask_queries: bool = False
  attention_fn: Callable[..., Array] = nn.dot_product_attention
  hide_padding: bool = True

  @nn.compact
  def __call__(
    self, x: Tokens, *, mask: Mask | None = None, train: bool = False
  ) -> Tokens:
    """Attends from every token to all real tokens."""
    qkv_dim = self.qkv_dim or x.shape[-1]
    checks.head_width(qkv_dim, self.num_heads, "qkv_dim")
    masks.check_mask(mask, x.shape[:2])
    if self.hide_padding and not self.mask_queries:
      x = masks.hide(x, mask)
    self._require("mask", mask is not None)
    self._require("dropout_rng", self.dropout_rate > 0)
    attention = nn.MultiHeadDotProductAttention(
      num_heads=self.num_heads,
      qkv_features=qkv_dim,
      out_features=x.shape[-1],
      broadcast_dropout=False,
      dropout_rate=self.dropout_rate,
      kernel_init=nn.initializers.xavier_uniform(),
      use_bias=self.use_bias,
      dtype=self.dtype,
      attention_fn=self.attention_fn,
    )
    nn.share_scope(self, attention)
    if mask is not None:
      queries = mask[:, None, :, None]
      mask = mask[:, None, None]  # [b 1 1 s]
      mask = mask & queries if self.mask_queries else mask
    return attention(x, mask=mask, deterministic=not train)

  def _require(self, argument, needed):
    names = inspect.signature(self.attention_fn).parameters
    if needed and argument not in names:
      raise ValueError(
        f"attention_fn does not take {argument!r}, only {list(names)}"
      )
