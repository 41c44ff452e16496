"""Pre-norm Transformer encoder with the attention layer passed in.

Any layer with the call interface of `SelfAttention` fits: `attention` is a
function without arguments that builds one, for instance
`functools.partial(SelfAttention, num_heads=8, qkv_dim=512)`.

With layers that return their memory, such as `NAMAttention` in mode "causal"
or "erase", an encoder can read a sequence in parts, or token by token.

A block also takes mask and train by position: flax's transforms drop keyword
arguments (`nn.scan`) or trace them (`nn.remat`).
"""

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, DTypeLike, Float, Int

from nam_jax.layers import merging
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks


class EncoderState(NamedTuple):
  """The state an encoder continues from, as large as its memories."""

  position: Int[Array, " b"]  # of the next token: how many real ones so far
  memories: tuple[Any, ...]  # one for each block: what its attention returns


def sinusoids(
  positions: Float[Array, "*b s"], width: int
) -> Float[Array, "*b s {width}"]:
  """Positional encodings of Vaswani et al. 2017, section 3.5.

  Channel 2i is sin(p / 10000^(2i / width)), channel 2i + 1 the cosine.
  """
  channels = jnp.arange(width)
  pair = (channels // 2 * 2).astype(positions.dtype)
  angles = jnp.multiply.outer(positions, 1e4 ** (-pair / width))
  even = jnp.broadcast_to(channels % 2 == 0, angles.shape)
  return jnp.where(even, jnp.sin(angles), jnp.cos(angles))


class LearnedPositions(nn.Module):
  """Adds a learned vector to each of at most `max_len` positions."""

  max_len: int

  @nn.compact
  def __call__(
    self, x: Tokens, positions: Int[Array, "b s"] | None = None
  ) -> Tokens:
    """Adds the vectors of these positions, by default the first s."""
    table = self.param(
      "pos_embedding",
      nn.initializers.normal(0.02),
      (1, self.max_len, x.shape[-1]),
    )
    table = jnp.asarray(table, x.dtype)
    if positions is None:
      return x + table[:, : x.shape[1]]
    return x + table[0, positions]


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


class TransformerEncoder(nn.Module):
  """Positions, `num_layers` blocks, and a final LayerNorm.

  Attributes:
    attention: makes one attention layer; called once per block.
    num_layers: number of blocks.
    mlp_dim: inner width of the MLPs.
    positions: added to the input: "learned", "sinusoidal" or None.
    max_len: longest sequence; None for no limit. Learned positions need one.
    dropout_rate: on the input, after attention and inside the MLPs.
    dtype: used in the computation.
    remat: compute a block again in the backward pass, instead of keeping what
      it computed in the forward pass; on CPUs, XLA undoes this without scan.
    scan: compile one block and loop over the layers; their parameters are
      stacked, with the layers as first axis.
    hide_padding: set padded tokens to zero first; see `SelfAttention`.
    style: what else the blocks are made of.
    merge: how many neighbouring tokens become one before each block; see
      `nam_jax.layers.merging`. Empty for 1 everywhere.
  """

  attention: Callable[[], nn.Module]
  num_layers: int
  mlp_dim: int
  positions: str | None = "sinusoidal"
  max_len: int | None = None
  dropout_rate: float = 0.0
  dtype: DTypeLike | None = None
  remat: bool = False
  scan: bool = False
  hide_padding: bool = True
  style: BlockStyle = BlockStyle()
  merge: tuple[int, ...] = ()

  def __post_init__(self):
    super().__post_init__()
    merging.check(self.merge, self.num_layers, self.scan)

  def __call__(
    self, x: Tokens, *, mask: Mask | None = None, train: bool = False
  ) -> Float[Array, "b t d"]:
    """Encodes embedded tokens, as many as there are unless some are merged.

    Args:
      x: The tokens. Positions are places in the row, padding included;
        `continue_from` counts real tokens only.
      mask: True at real tokens.
      train: Whether to apply dropout.
    """

    def apply(block, x, mask, _):
      return block(x, mask, train), None

    memories = (None,) * self.num_layers
    return self._encode(x, None, memories, mask, apply, train)[0]

  def continue_from(
    self,
    x: Tokens,
    state: EncoderState | None,
    *,
    mask: Mask | None = None,
    train: bool = False,
  ) -> tuple[Tokens, EncoderState]:
    """Encodes the tokens that follow those of an earlier call.

    Rows need not be equally long: only real tokens count as positions, so
    padding may stand before, between or after them.

    Args:
      x: The tokens that follow.
      state: What the earlier call returned; None starts a sequence. Passing no
        tokens, x[:, :0], returns the state a sequence starts with. To
        continue, max_len must be None.
      mask: True at real tokens.
      train: Whether to apply dropout.

    Returns:
      The outputs, and the state to continue from.
    """
    if self.merge:
      raise ValueError(
        f"merge={self.merge}: merged tokens cannot be read one by one"
      )
    if state is None:
      start = jnp.zeros(x.shape[0], jnp.int32)
      state = EncoderState(start, (None,) * self.num_layers)
    else:
      self._check_state(state, x)
    real = jnp.ones(x.shape[:2], bool) if mask is None else mask
    count = jnp.cumsum(real, axis=1, dtype=jnp.int32)
    positions = state.position[:, None] + count - 1

    def apply(block, x, mask, memory):
      return block.continue_from(x, memory, mask, train)

    y, memories = self._encode(x, positions, state.memories, mask, apply, train)
    position = state.position + jnp.sum(real, axis=1, dtype=jnp.int32)
    return y, EncoderState(position, memories)

  @nn.compact
  def _encode(self, x, positions, memories, mask, apply, train):
    x = self._add_positions(x, positions)
    x = nn.Dropout(self.dropout_rate)(x, deterministic=not train)
    x, mask, memories = self._apply_blocks(x, mask, memories, apply)
    y = self.style.normalized(
      x, mask, train=train, dtype=self.dtype, name="encoder_norm"
    )
    return y, memories

  def _apply_blocks(self, x, mask, memories, apply):
    """Applies all blocks: (outputs, mask, one memory for each of them)."""
    make_block = functools.partial(
      TransformerBlock,
      self.attention,
      self.mlp_dim,
      self.dropout_rate,
      self.dtype,
      self.hide_padding,
      self.style,
    )
    if self.remat:
      apply = nn.remat(apply, prevent_cse=not self.scan)
    if self.scan:
      loop = nn.scan(
        lambda block, x, memory: apply(block, x, mask, memory),
        variable_axes={True: 0},
        split_rngs={True: True},
        length=self.num_layers,
      )
      stacked = jax.tree.map(lambda *layers: jnp.stack(layers), *memories)
      x, stacked = loop(make_block(name="encoderblocks"), x, stacked)
      layers = map(operator.itemgetter, range(self.num_layers))
      return x, mask, tuple(jax.tree.map(layer, stacked) for layer in layers)
    after, counts = [], self.merge or (1,) * self.num_layers
    for layer, memory in enumerate(memories):
      if counts[layer] > 1:
        merge = merging.MergeTokens(
          counts[layer], self.dtype, name=f"merge_{layer}"
        )
        x, mask = merge(x, mask)
      block = make_block(name=f"encoderblock_{layer}")
      x, memory = apply(block, x, mask, memory)
      after.append(memory)
    return x, mask, tuple(after)

  def _check_state(self, state, x):
    if self.max_len is not None:
      raise ValueError(
        "a state to continue from does not bound the length of the sequence,"
        f" so max_len must be None, got {self.max_len}"
      )
    if len(state.memories) != self.num_layers:
      raise ValueError(
        f"the state has {len(state.memories)} memories, but"
        f" num_layers={self.num_layers}"
      )
    if state.position.shape != x.shape[:1]:
      raise ValueError(
        f"state.position must have shape {x.shape[:1]}, one number for each"
        f" row, got {state.position.shape}"
      )

  def _add_positions(self, x, positions):
    length, width = x.shape[1:]
    if self.max_len is not None and length > self.max_len:
      raise ValueError(
        f"sequence of {length} tokens is longer than max_len={self.max_len}"
      )
    if self.positions is None:
      return x
    if self.positions == "sinusoidal":
      if positions is None:
        positions = jnp.arange(length)[None]
      signal = sinusoids(positions.astype(jnp.float32), width)
      return x + signal.astype(x.dtype)
    if self.positions != "learned":
      raise ValueError(
        "positions must be 'learned', 'sinusoidal' or None, "
        f"got {self.positions!r}"
      )
    if self.max_len is None:
      raise ValueError("positions='learned' needs max_len")
    embedding = LearnedPositions(self.max_len, name="posembed_input")
    return embedding(x, positions)
