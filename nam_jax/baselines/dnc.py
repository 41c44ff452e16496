"""Differentiable Neural Computer (Graves et al. 2016), a baseline.

An LSTM controller with an external memory: it sees the input and what was read
one step before, and emits an interface vector that writes to the memory by
content or to free slots, and reads by content or in the order of writing. The
state is float32, whatever the controller's dtype.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax import lax
from jaxtyping import Array, DTypeLike, Float

from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import addressing, masks, varying


class DNCState(NamedTuple):
  """What a DNC carries from token to token.

  d is the width of its controller; n, k and r are as in `ops.addressing`.
  """

  cell: Float[Array, "*b d"]
  hidden: Float[Array, "*b d"]
  memory: Float[Array, "*b n k"]
  usage: Float[Array, "*b n"]
  link: Float[Array, "*b n n"]
  precedence: Float[Array, "*b n"]
  write_weights: Float[Array, "*b n"]
  read_weights: Float[Array, "*b r n"]
  reads: Float[Array, "*b r k"]


class Interface(NamedTuple):
  """What the controller tells the memory, in the order of the paper."""

  read_keys: Float[Array, "*b r k"]
  read_strengths: Float[Array, "*b r"]
  write_key: Float[Array, "*b k"]
  write_strength: Float[Array, "*b"]
  erase: Float[Array, "*b k"]
  write_vector: Float[Array, "*b k"]
  free_gates: Float[Array, "*b r"]
  allocation_gate: Float[Array, "*b"]
  write_gate: Float[Array, "*b"]
  read_modes: Float[Array, "*b r 3"]


def oneplus(x: Float[Array, "*b"]) -> Float[Array, "*b"]:
  """1 + log(1 + exp(x)), the range of strengths."""
  return 1 + jax.nn.softplus(x)


def interface_size(num_reads: int, slot_width: int) -> int:
  """Length of the interface vector: W R + 3 W + 5 R + 3 in the paper."""
  return num_reads * (slot_width + 5) + 3 * slot_width + 3


def parse_interface(
  vector: Float[Array, "*b e"], num_reads: int, slot_width: int
) -> Interface:
  """Cuts the controller's interface vector and bounds its parts."""
  r, k = num_reads, slot_width
  shapes = [(r, k), (r,), (k,), (), (k,), (k,), (r,), (), (), (r, 3)]
  parts, start = [], 0
  for shape in shapes:
    size = math.prod(shape)
    part = vector[..., start : start + size]
    parts.append(part.reshape(*vector.shape[:-1], *shape))
    start += size
  raw = Interface(*parts)
  return raw._replace(
    read_strengths=oneplus(raw.read_strengths),
    write_strength=oneplus(raw.write_strength),
    erase=jax.nn.sigmoid(raw.erase),
    free_gates=jax.nn.sigmoid(raw.free_gates),
    allocation_gate=jax.nn.sigmoid(raw.allocation_gate),
    write_gate=jax.nn.sigmoid(raw.write_gate),
    read_modes=jax.nn.softmax(raw.read_modes, axis=-1),
  )


def access(state: DNCState, interface: Interface) -> DNCState:
  """One write and one read of the memory; the controller's part is kept."""
  retained = addressing.retention(interface.free_gates, state.read_weights)
  usage = addressing.update_usage(state.usage, state.write_weights, retained)
  write_content = addressing.content_weighting(
    state.memory,
    interface.write_key[..., None, :],
    interface.write_strength[..., None],
  )[..., 0, :]
  write_weights = addressing.write_weighting(
    write_content,
    addressing.allocation_weighting(usage),
    interface.allocation_gate,
    interface.write_gate,
  )
  memory = addressing.write(
    state.memory, write_weights, interface.erase, interface.write_vector
  )
  link, backward, forward = addressing.update_and_follow(
    state.link, state.precedence, write_weights, state.read_weights
  )
  read_weights = addressing.read_weighting(
    interface.read_modes,
    backward,
    addressing.content_weighting(
      memory, interface.read_keys, interface.read_strengths
    ),
    forward,
  )
  return state._replace(
    memory=memory,
    usage=usage,
    link=link,
    precedence=addressing.update_precedence(state.precedence, write_weights),
    write_weights=write_weights,
    read_weights=read_weights,
    reads=addressing.read(memory, read_weights),
  )


class DNCCell(nn.RNNCellBase):
  """One step of a DNC.

  Attributes:
    features: width of the outputs.
    controller_features: width of the LSTM controller.
    num_slots: number of memory slots, N in the paper.
    slot_width: width of a slot, W in the paper.
    num_reads: number of read heads, R in the paper.
    dtype: used in the controller.
  """

  features: int
  controller_features: int
  num_slots: int = 32
  slot_width: int = 16
  num_reads: int = 4
  dtype: DTypeLike | None = None

  def setup(self):
    self.controller = nn.OptimizedLSTMCell(
      self.controller_features, dtype=self.dtype
    )
    size = interface_size(self.num_reads, self.slot_width)
    self.interface = nn.Dense(size, dtype=self.dtype)
    self.output = nn.Dense(self.features, dtype=self.dtype)

  def __call__(
    self, carry: DNCState, x: Float[Array, "*b d"]
  ) -> tuple[DNCState, Float[Array, "*b y"]]:
    """Takes one token; returns the new state and the output."""
    carry, found = self.advance(carry, x)
    return carry, self.output(found)

  def advance(
    self, carry: DNCState, x: Float[Array, "*b d"]
  ) -> tuple[DNCState, Float[Array, "*b e"]]:
    """Takes one token; returns the new state and what the output reads."""
    batch, dtype = x.shape[:-1], self.dtype or x.dtype
    reads = lax.collapse(carry.reads, len(batch)).astype(dtype)
    (cell, hidden), _ = self.controller(
      (carry.cell.astype(dtype), carry.hidden.astype(dtype)),
      jnp.concatenate([x.astype(dtype), reads], axis=-1),
    )
    interface = parse_interface(
      self.interface(hidden).astype(carry.memory.dtype),
      self.num_reads,
      self.slot_width,
    )
    state = access(carry, interface)._replace(
      cell=cell.astype(carry.cell.dtype),
      hidden=hidden.astype(carry.hidden.dtype),
    )
    reads = lax.collapse(state.reads, len(batch)).astype(dtype)
    return state, jnp.concatenate([hidden, reads], axis=-1)

  @nn.nowrap
  def initialize_carry(
    self, rng: jax.Array, input_shape: tuple[int, ...]
  ) -> DNCState:
    """The empty memory; all zeros, so that `rng` is not used."""
    del rng
    n, k, r = self.num_slots, self.slot_width, self.num_reads
    d = self.controller_features
    shapes = [(d,), (d,), (n, k), (n,), (n, n), (n,), (n,), (r, n), (r, k)]
    return DNCState(*(jnp.zeros((*input_shape[:-1], *s)) for s in shapes))

  @property
  def num_feature_axes(self) -> int:
    """One feature axis: a token is a vector."""
    return 1


class DNC(nn.Module):
  """A DNC over a whole sequence; call it token by token to stream.

  Padded tokens leave the state untouched and output zero.

  Attributes:
    controller_features: width of the LSTM controller; the input's by default.
    num_slots: number of memory slots.
    slot_width: width of a slot.
    num_reads: number of read heads.
    dtype: used in the controller.
  """

  controller_features: int | None = None
  num_slots: int = 32
  slot_width: int = 16
  num_reads: int = 4
  dtype: DTypeLike | None = None

  @nn.compact
  def __call__(
    self,
    x: Tokens,
    *,
    initial_state: DNCState | None = None,
    mask: Mask | None = None,
  ) -> tuple[Tokens, DNCState]:
    """Returns the outputs and the state after the last real token."""
    b, s, d = x.shape
    masks.check_mask(mask, (b, s))
    x = masks.hide(x, mask)
    cell = DNCCell(
      features=d,
      controller_features=self.controller_features or d,
      num_slots=self.num_slots,
      slot_width=self.slot_width,
      num_reads=self.num_reads,
      dtype=self.dtype,
      name="cell",
    )
    if initial_state is None:
      initial_state = cell.initialize_carry(jax.random.key(0), (b, d))
    initial_state, *_ = varying.alike(initial_state, x, mask)

    # Recomputing a step in the backward pass is faster than storing it, except
    # for the products with weights.
    @functools.partial(
      nn.remat,
      prevent_cse=False,
      policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    )
    def step(cell, state, inputs):
      x, real = inputs
      new, found = cell.advance(state, x)
      if real is None:
        return new, found

      def select(new, old):
        return jnp.where(real.reshape(b, *[1] * (new.ndim - 1)), new, old)

      return jax.tree.map(select, new, state), found

    scan = nn.scan(
      step,
      variable_broadcast="params",
      split_rngs={"params": False},
      in_axes=1,
      out_axes=1,
    )
    state, found = scan(cell, initial_state, (x, mask))
    return masks.hide(cell.output(found), mask), state
