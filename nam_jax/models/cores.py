"""The networks between embedding and logits in the models of `registry`.

Every core is called core(x [b s d], mask=[b s], train=...) -> [b s e]. Cores
that are already such a layer, TransformerEncoder, UniversalTransformer and
LSTMAttention, need no class here.
"""

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float

from nam_jax.baselines import dnc
from nam_jax.layers import (
  lsam,
  lstm,
  nam_tm,
  short_convolution,
  transformer_block,
)
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks, tape


class TuringMachines(nn.Module):
  """Two NAM Turing machines, one after the other, on the same tape.

  Each is steered by its own bidirectional LSTM over the tokens. The
  second one sees the tokens, not the outputs of the first: it learns of the
  first through the tape alone. What it reads goes through an MLP, and through
  an LSTM that carries a state along the tape, such as the carry of a sum; the
  core outputs both.

  Attributes:
    num_heads: number of tapes.
    readout_dim: width of the MLP.
    state_features: width of the LSTM after it; 0 leaves it out.
    tape_length: cells per tape.
    control_features: width of one direction of the LSTMs; by default half of
      the input's.
    jump: whether heads can jump to the cell whose key matches a query.
    separate_erase: learn an erase probability, instead of p_e = p_w.
    right_bias: how much read and write heads prefer RIGHT before training.
    sharpen: power that keeps heads on few cells; see `NAMTuringMachine`.
    dropout_rate: applied to the LSTMs' outputs.
  """

  num_heads: int
  readout_dim: int
  state_features: int
  tape_length: int = 32
  control_features: int | None = None
  jump: bool = True
  separate_erase: bool = False
  right_bias: tuple[float, float] = (0.0, 0.0)
  sharpen: float = 1.0
  dropout_rate: float = 0.0

  @nn.compact
  def __call__(
    self, x: Tokens, *, mask: Mask, train: bool
  ) -> Float[Array, "b s e"]:
    """What the second machine read, and the state after it."""
    x = masks.hide(x, mask)
    transitions = tape.TRANSITIONS
    if not self.jump:
      transitions = tuple(t for t in transitions if t is not tape.JUMP)
    initial_tape = None
    for name in ("first", "second"):
      control, _ = lstm.LSTM(
        self.control_features or x.shape[-1] // 2,
        bidirectional=True,
        name=f"{name}_controller",
      )(x, mask=mask)
      control = nn.Dropout(self.dropout_rate)(control, deterministic=not train)
      outputs, final = nam_tm.NAMTuringMachine(
        self.num_heads,
        transitions=transitions,
        separate_erase=self.separate_erase,
        right_bias=self.right_bias,
        sharpen=self.sharpen,
        name=f"{name}_machine",
      )(
        x,
        control=control,
        tape_length=self.tape_length,
        initial_tape=initial_tape,
        mask=mask,
      )
      initial_tape = tape.rewind(final)
    read = nn.LayerNorm(name="read_norm")(outputs)
    read = nn.relu(nn.Dense(self.readout_dim, name="readout")(read))
    if not self.state_features:
      return read
    state, _ = lstm.LSTM(self.state_features, name="state")(read, mask=mask)
    return jnp.concatenate([read, state], axis=-1)


class LSAMEncoderDecoder(nn.Module):
  """LSAM in both directions, MLP, and a forward LSAM that remembers both.

  Attributes:
    num_heads: number of heads; half of the encoder's run backward.
    mlp_dim: inner width of the MLP.
    readout_dim: width of the layer that the decoder's outputs go through.
    dropout_rate: inside the MLP.
  """

  num_heads: int
  mlp_dim: int
  readout_dim: int
  dropout_rate: float = 0.0

  @nn.compact
  def __call__(
    self, x: Tokens, *, mask: Mask, train: bool
  ) -> Float[Array, "b s e"]:
    """The outputs of the decoder, which starts from the encoder's memory."""
    x = masks.hide(x, mask)
    d = x.shape[-1]
    encoder = lsam.LSAM(d, self.num_heads, bidirectional=True, name="encoder")
    encoded, state = encoder(x, mask=mask)
    x = x + encoded
    mlp = transformer_block.MLP(self.mlp_dim, self.dropout_rate, name="mlp")
    x = x + mlp(nn.LayerNorm(name="mlp_norm")(x), train=train)
    start = state._replace(hidden=jnp.zeros_like(state.hidden))
    decoder = lsam.LSAM(d, self.num_heads, name="decoder")
    x = nn.LayerNorm(name="decoder_norm")(x)
    read = decoder(x, initial_state=start, mask=mask)[0]
    read = nn.LayerNorm(name="read_norm")(read)
    return nn.relu(nn.Dense(self.readout_dim, name="readout")(read))


class Computer(nn.Module):
  """A Differentiable Neural Computer, with dropout.

  Attributes:
    controller_features: width of its LSTM.
    num_slots: number of memory slots.
    slot_width: width of a slot.
    num_reads: number of read heads.
    dropout_rate: applied to the outputs.
  """

  controller_features: int
  num_slots: int = 32
  slot_width: int = 16
  num_reads: int = 4
  dropout_rate: float = 0.0

  @nn.compact
  def __call__(self, x: Tokens, *, mask: Mask, train: bool) -> Tokens:
    """The outputs of the computer."""
    computer = dnc.DNC(
      self.controller_features, self.num_slots, self.slot_width, self.num_reads
    )
    outputs, _ = computer(masks.hide(x, mask), mask=mask)
    return nn.Dropout(self.dropout_rate)(outputs, deterministic=not train)


class Convolved(nn.Module):
  """Another core, whose tokens first see the few before them.

  Attributes:
    core: the other core.
    width: tokens that a token sees, itself included.
  """

  core: nn.Module
  width: int

  @nn.compact
  def __call__(
    self, x: Tokens, *, mask: Mask, train: bool
  ) -> Float[Array, "b s e"]:
    """The core's outputs for x + SiLU(convolution of x)."""
    x = masks.hide(x, mask)
    b, _, d = x.shape
    kernel = self.param(
      "kernel", nn.initializers.lecun_uniform(), (self.width, d)
    )
    tail = jnp.zeros((b, self.width - 1, d), x.dtype)
    near, _ = short_convolution.short_convolution(
      x, jnp.asarray(kernel, x.dtype)[:, None], tail, mask
    )
    return self.core(x + nn.silu(near), mask=mask, train=train)
