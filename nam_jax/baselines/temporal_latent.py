"""Temporal Latent Bottleneck (Didolkar et al. 2022), a baseline.

A recurrent net whose step is a Transformer: the sequence is read in blocks of
tokens, and a few state tokens carry what is known from one block to the next.
In each block the tokens attend to each other and to the state, then the state
attends to the tokens. The cost is linear in the length of the sequence.
"""

import functools

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Bool, DTypeLike, Float

from nam_jax.baselines.efficient import blocks
from nam_jax.layers import checks, self_attention, transformer_block
from nam_jax.layers.positions import LearnedPositions, sinusoids
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks


class CrossBlock(nn.Module):
  """A `TransformerBlock` that attends from x to another sequence.

  Attributes:
    num_heads: number of heads.
    qkv_dim: width of all heads together.
    mlp_dim: inner width of the MLP.
    dropout_rate: after the attention and inside the MLP.
    attention_dropout_rate: applied to the attention weights.
    dtype: used in the computation; the residual stream keeps x's.
  """

  num_heads: int
  qkv_dim: int
  mlp_dim: int
  dropout_rate: float = 0.0
  attention_dropout_rate: float = 0.0
  dtype: DTypeLike | None = None

  @nn.compact
  def __call__(
    self,
    x: Tokens,
    context: Float[Array, "b t d"],
    *,
    context_mask: Bool[Array, "b t"] | None = None,
    train: bool = False,
  ) -> Tokens:
    """x after attending once to the real tokens of the context."""
    norm = functools.partial(nn.LayerNorm, dtype=self.dtype)
    masks.check_mask(context_mask, context.shape[:2], "context_mask")
    context = masks.hide(context, context_mask)
    if context_mask is not None:
      context_mask = context_mask[:, None, None]  # [b 1 1 t]
    y = nn.MultiHeadDotProductAttention(
      num_heads=self.num_heads,
      qkv_features=self.qkv_dim,
      out_features=x.shape[-1],
      broadcast_dropout=False,
      dropout_rate=self.attention_dropout_rate,
      kernel_init=nn.initializers.xavier_uniform(),
      use_bias=False,
      dtype=self.dtype,
      name="attention",
    )(
      norm(name="norm")(x),
      norm(name="context_norm")(context),
      mask=context_mask,
      deterministic=not train,
    )
    y = nn.Dropout(self.dropout_rate)(y, deterministic=not train)
    x = x + y.astype(x.dtype)
    y = transformer_block.MLP(
      self.mlp_dim, self.dropout_rate, self.dtype, name="mlp"
    )(norm(name="mlp_norm")(x), train=train)
    return x + y.astype(x.dtype)


class TemporalLatentEncoder(nn.Module):
  """Reads a sequence block by block; returns the state tokens at its end.

  The state starts at zero. Sinusoidal positions are added to the state tokens
  at each block to tell them apart. Padded tokens are never attended
  to; a block without a real token leaves the state as it is.

  Attributes:
    num_heads: number of heads of all attentions.
    qkv_dim: width of all heads together.
    mlp_dim: inner width of the MLPs.
    block_size: tokens per block.
    num_state_tokens: number of state tokens.
    self_to_cross_ratio_input_updater: self-attention layers of the tokens
      before each of their cross-attention layers.
    num_cross_layers_input_updater: cross-attention layers, tokens to state.
    num_cross_layers_state_updater: cross-attention layers, state to tokens.
    use_global_pos_encoding: whether positions count from the start of the
      sequence, not of the block.
    max_len: longest sequence; None for no limit. Learned positions that count
      from the start of the sequence require it.
    positions: added to the input: "sinusoidal" or "learned".
    dropout_rate: on the input, after attention and inside the MLPs.
    attention_dropout_rate: applied to the attention weights.
    dtype: used in the computation; the state keeps the input's.
  """

  num_heads: int
  qkv_dim: int
  mlp_dim: int
  block_size: int = 20
  num_state_tokens: int = 20
  self_to_cross_ratio_input_updater: int = 2
  num_cross_layers_input_updater: int = 1
  num_cross_layers_state_updater: int = 1
  use_global_pos_encoding: bool = False
  max_len: int | None = None
  positions: str = "sinusoidal"
  dropout_rate: float = 0.0
  attention_dropout_rate: float = 0.0
  dtype: DTypeLike | None = None

  def __post_init__(self):
    checks.head_width(self.qkv_dim, self.num_heads, "qkv_dim")
    if self.positions not in ("sinusoidal", "learned"):
      raise ValueError(
        f"positions must be 'sinusoidal' or 'learned', got {self.positions!r}"
      )
    super().__post_init__()

  @nn.compact
  def __call__(
    self, x: Tokens, *, mask: Mask | None = None, train: bool = False
  ) -> Float[Array, "b n d"]:
    """The state tokens after the last block, normalised."""
    checks.check_tokens(x)
    b, s, d = x.shape
    if self.max_len is not None and s > self.max_len:
      raise ValueError(
        f"sequence of {s} tokens is longer than max_len={self.max_len}"
      )
    c = min(self.block_size, s)
    mask = blocks.real_tokens(mask, x)
    x, mask = masks.hide(x, mask), blocks.split(mask, c)
    if self.use_global_pos_encoding:
      x = self._add_positions(x, self.max_len)
    x = blocks.split(x, c)
    if not self.use_global_pos_encoding:
      each = x.reshape(b * x.shape[1], c, d)
      each = self._add_positions(each, self.block_size)
      x = each.reshape(x.shape)
    x = nn.Dropout(self.dropout_rate)(x, deterministic=not train)
    scan = nn.scan(
      functools.partial(TemporalLatentEncoder._read_block, train=train),
      variable_broadcast="params",
      split_rngs={"params": False, "dropout": True},
      in_axes=1,
    )
    state = jnp.zeros((b, self.num_state_tokens, d), x.dtype)
    state, _ = scan(self, state, (x, mask))
    return nn.LayerNorm(dtype=self.dtype, name="encoder_norm")(state)

  def _add_positions(self, x, max_len):
    if self.positions == "sinusoidal":
      return x + _signal(x)
    if max_len is None:
      raise ValueError("learned positions of the whole sequence need max_len")
    return LearnedPositions(max_len, name="posembed_input")(x)

  def _read_block(self, state, block, *, train):
    """One step of the recurrence: the state after x [b c d]."""
    x, mask = block
    new = state + _signal(state)
    for i in range(self.num_cross_layers_input_updater):
      name = f"horizontal_block_{i}"
      for j in range(self.self_to_cross_ratio_input_updater):
        x = self._self_block(f"{name}_self_{j}")(x, mask=mask, train=train)
      x = self._cross_block(f"{name}_cross")(x, new, train=train)
    for i in range(self.num_cross_layers_state_updater):
      look = self._cross_block(f"vertical_block_{i}_cross")
      new = look(new, x, context_mask=mask, train=train)
    any_real = jnp.any(mask, axis=1)[:, None, None]
    return jnp.where(any_real, new, state), None

  def _self_block(self, name):
    attention = functools.partial(
      self_attention.SelfAttention,
      num_heads=self.num_heads,
      qkv_dim=self.qkv_dim,
      dropout_rate=self.attention_dropout_rate,
      dtype=self.dtype,
    )
    return transformer_block.TransformerBlock(
      attention, self.mlp_dim, self.dropout_rate, self.dtype, name=name
    )

  def _cross_block(self, name):
    return CrossBlock(
      self.num_heads,
      self.qkv_dim,
      self.mlp_dim,
      self.dropout_rate,
      self.attention_dropout_rate,
      self.dtype,
      name=name,
    )


def _signal(x):
  positions = jnp.arange(x.shape[1], dtype=jnp.float32)
  return sinusoids(positions, x.shape[-1]).astype(x.dtype)[None]
