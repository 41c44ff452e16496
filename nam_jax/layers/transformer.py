"""Pre-norm Transformer encoder with the attention layer passed in.

Any layer with the call interface of `SelfAttention` fits: `attention` is a
function without arguments that builds one, for instance
`functools.partial(SelfAttention, num_heads=8, qkv_dim=512)`.

With layers that return their memory, such as `NAMAttention` in mode "causal"
or "erase", an encoder can read a sequence in parts, or token by token.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, DTypeLike, Float, Int

from nam_jax.layers import merging, transformer_block
from nam_jax.layers import positions as position_lib
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.layers.transformer_block import BlockStyle


class EncoderState(NamedTuple):
  """The state an encoder continues from, as large as its memories."""

  position: Int[Array, " b"]  # of the next token: how many real ones so far
  memories: tuple[Any, ...]  # one for each block: what its attention returns


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
      transformer_block.TransformerBlock,
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
      signal = position_lib.sinusoids(positions.astype(jnp.float32), width)
      return x + signal.astype(x.dtype)
    if self.positions != "learned":
      raise ValueError(
        "positions must be 'learned', 'sinusoidal' or None, "
        f"got {self.positions!r}"
      )
    if self.max_len is None:
      raise ValueError("positions='learned' needs max_len")
    embedding = position_lib.LearnedPositions(
      self.max_len, name="posembed_input"
    )
    return embedding(x, positions)
