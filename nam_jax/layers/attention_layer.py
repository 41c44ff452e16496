"""What multi-head attention layers have in common."""

import dataclasses

import jax
from flax import linen as nn
from jaxtyping import Array, DTypeLike, Float

from nam_jax.layers import checks
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks


class AttentionLayer(nn.Module):
  """Projects tokens to heads, lets them attend, and projects them back.

  A subclass defines in `attend` what the heads do. It is called like
  `SelfAttention`, and the last projection is its parameter `out`.

  Attributes:
    num_heads: number of heads.
    qkv_dim: width of all heads together; the input's by default.
    dropout_rate: applied to the attention weights, unless noted otherwise.
    use_bias: whether the projections have biases.
    dtype: used in the computation.
    hide_padding: set padded tokens to zero first, so that they may hold
      anything, NaN included. Without it they attend from what they hold, as in
      the Long Range Arena, where means include their outputs.
  """

  num_heads: int
  _: dataclasses.KW_ONLY
  qkv_dim: int | None = None
  dropout_rate: float = 0.0
  use_bias: bool = False
  dtype: DTypeLike | None = None
  hide_padding: bool = True

  @nn.compact
  def __call__(
    self, x: Tokens, *, mask: Mask | None = None, train: bool = False
  ) -> Tokens:
    """Attends from every token to real tokens, where the mask is True."""
    masks.check_mask(mask, x.shape[:2])
    if self.hide_padding:
      x = masks.hide(x, mask)
    return self.join_heads(self.attend(x, mask, train), x.shape[-1])

  def attend(self, x, mask, train):
    """What each head reads at each token, [b s h v]."""
    raise NotImplementedError

  def heads(self, x: Tokens, *names: str) -> list[Float[Array, "b s h k"]]:
    """Projects the tokens to all heads, once for each parameter name."""
    checks.check_tokens(x)
    qkv_dim = self.qkv_dim or x.shape[-1]
    width = checks.head_width(qkv_dim, self.num_heads, "qkv_dim")
    return [self.dense((self.num_heads, width), name)(x) for name in names]

  def join_heads(
    self, x: Float[Array, "b s h v"], width: int
  ) -> Float[Array, "b s {width}"]:
    """Projects all heads of a token back to the model's width."""
    return self.dense(width, "out", axis=(-2, -1))(x)

  def dense(self, features, name, axis=-1) -> nn.DenseGeneral:
    """A projection with this layer's bias setting and dtype."""
    return nn.DenseGeneral(
      features,
      axis=axis,
      use_bias=self.use_bias,
      dtype=self.dtype,
      kernel_init=nn.initializers.xavier_uniform(),
      name=name,
    )

  def dropout_rng(self, train: bool) -> jax.Array | None:
    """A key for the dropout of attention weights; None without dropout."""
    if not train or self.dropout_rate == 0:
      return None
    return self.make_rng("dropout")
