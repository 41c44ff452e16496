"""Long Short-term Attention Memory layers (paper, section of that name)."""

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, DTypeLike, Float

from nam_jax.layers import checks, lsam_parts, parameters
from nam_jax.layers.shapes import Mask, Tokens
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
    params = {
      name: self.param(name, p.init, p.shape, jnp.float32)
      for name, p in lsam_parts.group(h, v, x.shape[-1]).items()
    }
    return lsam_parts.one_way(
      params, x, initial_state, dtype=self.dtype, mask=mask, reverse=reverse
    )

  @nn.nowrap
  def initialize_carry(
    self, rng: jax.Array, input_shape: tuple[int, ...]
  ) -> LSAMState:
    """An empty memory and a zero hidden state; rng is not needed."""
    del rng
    h, v = self.num_heads, self.features // self.num_heads
    dtype = self.dtype or jnp.float32
    return lsam_parts.zero_state(input_shape[:-1], h, v, dtype)

  @property
  def num_feature_axes(self) -> int:
    """One feature axis: inputs are vectors."""
    return 1


class LSAM(nn.Module, lsam_parts.Settings):
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

  def __post_init__(self):
    self.check()
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
    checks.check_tokens(x)
    table = lsam_parts.table(self, x.shape[-1])
    params = {n: parameters.Group(name=n)(group) for n, group in table.items()}
    return lsam_parts.run(self, params, x, initial_state, mask)
