"""What the linen and the nnx module of LSAM share.

Their settings, the parameters of each direction, and what they compute.
"""

import dataclasses
from collections.abc import Mapping

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
    """Checks that the heads divide the features, and into two directions."""
    checks.head_width(self.features, self.num_heads, "features")
    if self.bidirectional and self.num_heads % 2:
      raise ValueError(
        "bidirectional=True splits the heads into two directions, but"
        f" num_heads={self.num_heads} is odd"
      )

  def directions(self) -> tuple[str, ...]:
    """The groups of parameters, one for each direction."""
    return ("forward", "backward") if self.bidirectional else ("forward",)


def table(settings: Settings, width: int) -> parameters.Table:
  """All parameters of a layer, for tokens of this width."""
  names = settings.directions()
  h = settings.num_heads // len(names)
  v = settings.features // settings.num_heads
  return {name: group(h, v, width) for name in names}


def group(h: int, v: int, width: int) -> dict[str, parameters.Parameter]:
  """The parameters of one direction with h heads of width v."""
  o, over = lsam.lsam_width(v), nn.initializers.lecun_normal
  return {
    "input": parameters.Parameter((width, h, o), over(0, (1, 2))),
    "recurrent": parameters.Parameter((h, v, h, o), over((0, 1), (2, 3))),
    "bias": parameters.Parameter((h, o), nn.initializers.zeros),
  }


def zero_state(batch: tuple[int, ...], h: int, v: int, dtype) -> LSAMState:
  """An empty memory and a zero hidden state, in float32 or wider."""
  dtype = precision.accumulator(dtype)
  return LSAMState(
    jnp.zeros((*batch, h, v, v), dtype), jnp.zeros((*batch, h, v), dtype)
  )


def one_way(
  params: Mapping[str, Array],
  x: Tokens,
  initial_state: LSAMState | None = None,
  *,
  dtype: DTypeLike | None = None,
  mask: Mask | None = None,
  reverse: bool = False,
) -> tuple[Float[Array, "b s e"], LSAMState]:
  """All tokens, in one direction."""
  checks.check_tokens(x)
  W_h = params["recurrent"]
  x, W_x, bias = dtypes.promote_dtype(
    x, params["input"], params["bias"], dtype=dtype
  )
  b, s, _ = x.shape
  h, v, *_ = W_h.shape
  if initial_state is None:
    initial_state = zero_state((b,), h, v, x.dtype)
  checks.check_state("initial_state", initial_state, ((b, h, v, v), (b, h, v)))
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
  """All tokens, in all directions: (outputs, final state)."""
  names = settings.directions()
  part = settings.num_heads // len(names)
  outputs, states = [], []
  for i, name in enumerate(names):
    start = None
    if initial_state is not None:
      heads = slice(i * part, (i + 1) * part)
      start = LSAMState(*(array[:, heads] for array in initial_state))
    output, state = one_way(
      params[name],
      x,
      start,
      dtype=settings.dtype,
      mask=mask,
      reverse=name == "backward",
    )
    outputs.append(output)
    states.append(state)
  state = LSAMState(
    *(jnp.concatenate(arrays, axis=1) for arrays in zip(*states, strict=True))
  )
  return jnp.concatenate(outputs, axis=-1), state
