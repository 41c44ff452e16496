"""One block of a Transformer: attention and an MLP, each after a norm.

A block also takes mask and train by position: flax's transforms drop keyword
arguments (`nn.scan`) or trace them (`nn.remat`).
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import DTypeLike

from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks


class MLP(nn.Module):
  """The Transformer's feed-forward layer: Dense, GELU, Dense.

  Attributes:
    mlp_dim: inner width.
    dropout_rate: after each of the two.
    dtype: used in the computation.
    gated: multiply SiLU of one half of the first layer's outputs by the other
      half, in place of GELU (SwiGLU; Shazeer 2020, 2002.05202).
  """

  mlp_dim: int
  dropout_rate: float = 0.0
  dtype: DTypeLike | None = None
  gated: bool = False

  @nn.compact
  def __call__(self, x: Tokens, *, train: bool = False) -> Tokens:
    """Applies the layer to each token separately."""
    dense = functools.partial(
      nn.Dense,
      dtype=self.dtype,
      kernel_init=nn.initializers.xavier_uniform(),
      bias_init=nn.initializers.normal(1e-6),
    )
    dropout = nn.Dropout(self.dropout_rate, deterministic=not train)
    if self.gated:
      gate, hidden = jnp.split(dense(2 * self.mlp_dim)(x), 2, axis=-1)
      hidden = nn.silu(gate) * hidden
    else:
      hidden = nn.gelu(dense(self.mlp_dim)(x))
    return dropout(dense(x.shape[-1])(dropout(hidden)))


@dataclasses.dataclass(frozen=True)
class BlockStyle:
  """What blocks are made of; the defaults are those of the Transformer.

  Attributes:
    norm: "layer", or "batch": over all real tokens of a batch.
    gated_mlp: whether the MLPs are gated; see `MLP`.
  """

  norm: str = "layer"
  gated_mlp: bool = False

  def __post_init__(self):
    if self.norm not in ("layer", "batch"):
      raise ValueError(f"norm={self.norm!r} is not one of layer, batch")

  def normalized(
    self,
    x: Tokens,
    mask: Mask | None,
    *,
    train: bool,
    dtype: DTypeLike | None,
    name: str | None = None,
  ) -> Tokens:
    """The tokens after a norm that belongs to the calling module."""
    if self.norm == "layer":
      return nn.LayerNorm(dtype=dtype, name=name)(x)
    real = None if mask is None else mask[..., None]
    norm = nn.BatchNorm(not train, momentum=0.9, dtype=dtype, name=name)
    return norm(x, mask=real)


class TransformerBlock(nn.Module):
  """x + attention(norm(x)), then x + MLP(norm(x)).

  Attributes:
    attention: makes the attention layer.
    mlp_dim: inner width of the MLP.
    dropout_rate: after the attention and inside the MLP; the attention layer
      sets its own rate for the attention weights.
    dtype: used in the computation; the residual stream keeps the input's.
    hide_padding: set padded tokens to zero first; see `SelfAttention`.
    style: what else it is made of.
  """

  attention: Callable[[], nn.Module]
  mlp_dim: int
  dropout_rate: float = 0.0
  dtype: DTypeLike | None = None
  hide_padding: bool = True
  style: BlockStyle = BlockStyle()

  def __call__(
    self, x: Tokens, mask: Mask | None = None, train: bool = False
  ) -> Tokens:
    """Applies the block; padding never changes the output of a real token."""

    def attend(layer, y):
      return layer(y, mask=mask, train=train), None

    return self._apply(x, mask, attend, train)[0]

  def continue_from(
    self,
    x: Tokens,
    memory: Any,
    mask: Mask | None = None,
    train: bool = False,
  ) -> tuple[Tokens, Any]:
    """(outputs, memory), if the attention layer has this method too."""

    def attend(layer, y):
      if not hasattr(layer, "continue_from"):
        raise ValueError(
          f"{type(layer).__name__} keeps no memory to continue from;"
          " NAMAttention in mode 'causal' or 'erase' does"
        )
      return layer.continue_from(y, memory, mask=mask, train=train)

    return self._apply(x, mask, attend, train)

  @nn.compact
  def _apply(self, x, mask, attend, train):
    masks.check_mask(mask, x.shape[:2])
    x = masks.hide(x, mask) if self.hide_padding else x
    norm = functools.partial(
      self.style.normalized, mask=mask, train=train, dtype=self.dtype
    )
    y = norm(x)
    y, memory = attend(self.attention(), y)
    y = nn.Dropout(self.dropout_rate)(y, deterministic=not train)
    x = x + y.astype(x.dtype)
    y = norm(x)
    mlp = MLP(self.mlp_dim, self.dropout_rate, self.dtype, self.style.gated_mlp)
    y = mlp(y, train=train)
    return x + y.astype(x.dtype), memory
