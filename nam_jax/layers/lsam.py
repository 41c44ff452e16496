"""Long Short-term Attention Memory layers (paper, section of that name)."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen import dtypes
from jaxtyping import Array, DTypeLike, Float

from nam_jax.layers import checks
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import lsam, precision
from nam_jax.ops.lsam import LSAMState


class LSAMCell(nn.RNNCellBase):
  """One LSAM step, for `nn.RNN` and for streaming.

  Attributes:
    features: width of the hidden state, all heads together.
    num_heads: number of heads, one memory each.
    dtype: used in the input projection; states are float32 or wider.
  """

  features: int
  num_heads: int = 1
  dtype: DTypeLike | None = None

  def __post_init__(self):
    checks.head_width(self.features, self.num_heads, "features")
    super().__post_init__()

  def __call__(
    self, carry: LSAMState, x: Float[Array, "b d"]
  ) -> tuple[LSAMState, Float[Array, "b e"]]:
    """One token: (new state, output)."""
    outputs, carry = self.sequence(x[:, None], carry)
    return carry, outputs[:, 0]

  @nn.compact
  def sequence(
    self,
    x: Tokens,
    initial_state: LSAMState | None = None,
    *,
    mask: Mask | None = None,
    reverse: bool = False,
  ) -> tuple[Float[Array, "b s e"], LSAMState]:
    """All tokens: the same as scanning `__call__`, but faster."""
    checks.check_tokens(x)
    h, v = self.num_heads, self.features // self.num_heads
    d, o = x.shape[-1], lsam.lsam_width(v)
    over = nn.initializers.lecun_normal
    W_x = self.param("input", over(0, (1, 2)), (d, h, o))
    W_h = self.param("recurrent", over((0, 1), (2, 3)), (h, v, h, o))
    bias = self.param("bias", nn.initializers.zeros, (h, o))
    x, W_x, bias = dtypes.promote_dtype(x, W_x, bias, dtype=self.dtype)
    if initial_state is None:
      initial_state = self._zero_state(x.shape[:1], x.dtype)
    b = x.shape[0]
    shapes = ((b, h, v, v), (b, h, v))
    checks.check_state("initial_state", initial_state, shapes)
    hidden, state = lsam.lsam_scan(
      x, W_x, bias, W_h, initial_state, mask=mask, reverse=reverse
    )
    return hidden.reshape(*x.shape[:2], self.features), state

  @nn.nowrap
  def initialize_carry(
    self, rng: jax.Array, input_shape: tuple[int, ...]
  ) -> LSAMState:
    """An empty memory and a zero hidden state; rng is not needed."""
    del rng
    return self._zero_state(input_shape[:-1], self.dtype or jnp.float32)

  @nn.nowrap
  def _zero_state(self, batch, dtype):
    h, v = self.num_heads, self.features // self.num_heads
    dtype = precision.accumulator(dtype)
    return LSAMState(
      jnp.zeros((*batch, h, v, v), dtype), jnp.zeros((*batch, h, v), dtype)
    )

  @property
  def num_feature_axes(self) -> int:
    """One feature axis: inputs are vectors."""
    return 1


class LSAM(nn.Module):
  """LSAM over a sequence: (outputs, final state).

  Pass the state of one call to the next to continue a sequence, or to another
  LSAM of the same size so that it starts from what this one remembers
  (`state._replace(hidden=...)` passes the memory alone).

  Attributes:
    features: width of the outputs, all heads together.
    num_heads: number of heads.
    bidirectional: run the second half of the heads from the last token to the
      first.
    dtype: used in the input projection; states are float32 or wider.
  """

  features: int
  num_heads: int = 1
  bidirectional: bool = False
  dtype: DTypeLike | None = None

  def __post_init__(self):
    checks.head_width(self.features, self.num_heads, "features")
    if self.bidirectional and self.num_heads % 2:
      raise ValueError(
        "bidirectional=True splits the heads into two directions, but"
        f" num_heads={self.num_heads} is odd"
      )
    super().__post_init__()

  @nn.compact
  def __call__(
    self,
    x: Tokens,
    *,
    initial_state: LSAMState | None = None,
    mask: Mask | None = None,
  ) -> tuple[Float[Array, "b s e"], LSAMState]:
    """Runs over the sequence; a masked token outputs zero."""
    directions = ("forward", "backward") if self.bidirectional else ("forward",)
    part = self.num_heads // len(directions)
    outputs, states = [], []
    for i, name in enumerate(directions):
      cell = LSAMCell(
        self.features // len(directions), part, dtype=self.dtype, name=name
      )
      start = None
      if initial_state is not None:
        heads = slice(i * part, (i + 1) * part)
        start = LSAMState(*(array[:, heads] for array in initial_state))
      output, state = cell.sequence(
        x, start, mask=mask, reverse=name == "backward"
      )
      outputs.append(output)
      states.append(state)
    state = LSAMState(
      *(jnp.concatenate(arrays, axis=1) for arrays in zip(*states, strict=True))
    )
    return jnp.concatenate(outputs, axis=-1), state
