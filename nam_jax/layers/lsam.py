"""Long Short-term Attention Memory layers (paper, section of that name).

The nnx module has the same `Settings` and `table`, and computes with `run`.
"""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax.linen import dtypes
from jaxtyping import Array, DTypeLike, Float

from nam_jax.layers import checks, parameters
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import lsam, precision
from nam_jax.ops.lsam import LSAMState


@dataclasses.dataclass(eq=False, repr=False)
class Settings:
  """The fields of `LSAM`, which says what they mean."""

  features: int
  num_heads: int = 1
  bidirectional: bool = False
  dtype: DTypeLike | None = None

  def check(self) -> None:
    """Checks that the settings fit together."""
    checks.head_width(self.features, self.num_heads, "features")
    if self.bidirectional and self.num_heads % 2:
      raise ValueError(
        "bidirectional=True splits the heads into two directions, but"
        f" num_heads={self.num_heads} is odd"
      )

  @property
  def directions(self) -> tuple[str, ...]:
    """The names of the directions."""
    return ("forward", "backward") if self.bidirectional else ("forward",)

  @property
  def each_way(self) -> tuple[int, int]:
    """Features and heads of each direction."""
    ways = len(self.directions)
    return self.features // ways, self.num_heads // ways


def cell_table(
  features: int, num_heads: int, width: int
) -> dict[str, parameters.Parameter]:
  """The parameters of one direction, for tokens of this width."""
  h, v = num_heads, features // num_heads
  o = lsam.lsam_width(v)
  over = nn.initializers.lecun_normal
  return {
    "input": parameters.Parameter((width, h, o), over(0, (1, 2))),
    "recurrent": parameters.Parameter((h, v, h, o), over((0, 1), (2, 3))),
    "bias": parameters.Parameter((h, o), nn.initializers.zeros),
  }


def table(settings: Settings, width: int) -> parameters.Table:
  """All parameters of a layer, for tokens of this width."""
  group = cell_table(*settings.each_way, width)
  return dict.fromkeys(settings.directions, group)


def run_cell(
  params: Mapping[str, Array],
  x: Tokens,
  initial_state: LSAMState | None,
  *,
  mask: Mask | None,
  reverse: bool,
  dtype: DTypeLike | None,
) -> tuple[Float[Array, "b s e"], LSAMState]:
  """Runs one direction over the sequence: (outputs, final state)."""
  checks.check_tokens(x)
  W_h = params["recurrent"]
  x, W_x, bias = dtypes.promote_dtype(
    x, params["input"], params["bias"], dtype=dtype
  )
  (b, s, _), (h, v) = x.shape, W_h.shape[:2]
  if initial_state is None:
    initial_state = _zero_state((b,), h, v, x.dtype)
  shapes = ((b, h, v, v), (b, h, v))
  checks.check_state("initial_state", initial_state, shapes)
  hidden, state = lsam.lsam_scan(
    x, W_x, bias, W_h, initial_state, mask=mask, reverse=reverse
  )
  return hidden.reshape(b, s, h * v), state


def run(
  settings: Settings,
  params: parameters.Params,
  x: Tokens,
  initial_state: LSAMState | None,
  mask: Mask | None,
) -> tuple[Float[Array, "b s e"], LSAMState]:
  """Runs all directions over the sequence: (outputs, final state)."""
  _, part = settings.each_way
  outputs, states = [], []
  for i, name in enumerate(settings.directions):
    start = None
    if initial_state is not None:
      heads = slice(i * part, (i + 1) * part)
      start = LSAMState(*(array[:, heads] for array in initial_state))
    output, state = run_cell(
      params[name],
      x,
      start,
      mask=mask,
      reverse=name == "backward",
      dtype=settings.dtype,
    )
    outputs.append(output)
    states.append(state)
  state = LSAMState(
    *(jnp.concatenate(arrays, axis=1) for arrays in zip(*states, strict=True))
  )
  return jnp.concatenate(outputs, axis=-1), state


def _zero_state(batch, h, v, dtype):
  dtype = precision.accumulator(dtype)
  return LSAMState(
    jnp.zeros((*batch, h, v, v), dtype), jnp.zeros((*batch, h, v), dtype)
  )


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

  def sequence(
    self,
    x: Tokens,
    initial_state: LSAMState | None = None,
    *,
    mask: Mask | None = None,
    reverse: bool = False,
  ) -> tuple[Float[Array, "b s e"], LSAMState]:
    """All tokens: the same as scanning `__call__`, but faster."""
    return run_cell(
      self.declared(x.shape[-1]),
      x,
      initial_state,
      mask=mask,
      reverse=reverse,
      dtype=self.dtype,
    )

  @nn.compact
  def declared(self, width: int) -> dict[str, Array]:
    """The parameters, for tokens of this width."""
    group = cell_table(self.features, self.num_heads, width)
    return {
      name: jnp.asarray(self.param(name, p.init, p.shape))
      for name, p in group.items()
    }

  @nn.nowrap
  def initialize_carry(
    self, rng: jax.Array, input_shape: tuple[int, ...]
  ) -> LSAMState:
    """An empty memory and a zero hidden state; rng is not needed."""
    del rng
    h, v = self.num_heads, self.features // self.num_heads
    return _zero_state(input_shape[:-1], h, v, self.dtype or jnp.float32)

  @property
  def num_feature_axes(self) -> int:
    """One feature axis: inputs are vectors."""
    return 1


class LSAM(nn.Module, Settings):
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
    params = {}
    for name in self.directions:
      cell = LSAMCell(*self.each_way, name=name)
      params[name] = cell.declared(x.shape[-1])
    return run(self, params, x, initial_state, mask)
