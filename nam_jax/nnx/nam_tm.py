"""The NAM Turing machine as an nnx module."""

from typing import Any

from flax import nnx
from jaxtyping import Array, Float

from nam_jax.layers import nam_tm
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.nnx import parameters
from nam_jax.ops.tape import Tape


class NAMTuringMachine(nnx.Module, nam_tm.Settings):
  """`nam_jax.NAMTuringMachine` for tokens of width `in_features`.

  With a `control` of another width than the tokens, set `control_features`.
  """

  def __init__(
    self,
    in_features: int,
    num_heads: int,
    tape_dim: int | None = None,
    *,
    control_features: int | None = None,
    rngs: nnx.Rngs,
    **settings: Any,
  ):
    nam_tm.Settings.__init__(self, num_heads, tape_dim, **settings)
    self.check()
    table = nam_tm.table(self, in_features, control_features or in_features)
    parameters.declare(self, table, rngs)

  def __call__(
    self,
    x: Tokens,
    *,
    control: Float[Array, "b s e"] | None = None,
    tape_length: int = 32,
    initial_tape: Tape | None = None,
    mask: Mask | None = None,
    sow_heads: bool = False,
  ) -> tuple[Tokens, Tape]:
    """Runs the machine over a sequence: (outputs, tape).

    The arguments are those of the linen module. With `sow_heads`, `heads` is
    sown for `nnx.capture(nnx.Intermediate)`.
    """
    outputs, final, seen = nam_tm.run(
      self,
      parameters.arrays(self),
      x,
      control=control,
      tape_length=tape_length,
      initial_tape=initial_tape,
      mask=mask,
    )
    if sow_heads:
      self.sow(nnx.Intermediate, "heads", seen.heads)
    return outputs, final
