"""The NAM Turing machine as an nnx module."""

from typing import Any

from flax import nnx
from jaxtyping import Array, Float

from nam_jax.layers import checks, nam_tm_parts
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.nnx import parameters
from nam_jax.ops.tape import Tape


class NAMTuringMachine(nnx.Module, nam_tm_parts.Settings):
  """`nam_jax.NAMTuringMachine` for tokens of width `in_features`.

  `control_features` is the width of what steers it, the same by default.
  """

  def __init__(
    self,
    in_features: int,
    num_heads: int,
    *,
    control_features: int | None = None,
    rngs: nnx.Rngs,
    **settings: Any,
  ):
    nam_tm_parts.Settings.__init__(self, num_heads, **settings)
    self.check()
    table = nam_tm_parts.table(
      self, in_features, control_features or in_features
    )
    parameters.declare(self, table, rngs)

  def __call__(
    self,
    x: Tokens,
    *,
    control: Float[Array, "b s e"] | None = None,
    tape_length: int = 32,
    initial_tape: Tape | None = None,
    mask: Mask | None = None,
  ) -> tuple[Tokens, Tape]:
    """Runs the machine over a sequence: (outputs, tape)."""
    checks.check_tokens(x)
    params = parameters.arrays(self)
    outputs, tape, _ = nam_tm_parts.run(
      self, params, x, control, tape_length, initial_tape, mask
    )
    return outputs, tape
