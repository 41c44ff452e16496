"""LSAM as an nnx module."""

from flax import nnx
from jaxtyping import Array, DTypeLike, Float

from nam_jax.layers import lsam_parts
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.nnx import parameters
from nam_jax.ops.lsam import LSAMState


class LSAM(nnx.Module, lsam_parts.Settings):
  """`nam_jax.LSAM` for tokens of width `in_features`."""

  def __init__(
    self,
    in_features: int,
    features: int,
    num_heads: int = 1,
    *,
    bidirectional: bool = False,
    dtype: DTypeLike | None = None,
    rngs: nnx.Rngs,
  ):
    lsam_parts.Settings.__init__(
      self, features, num_heads, bidirectional, dtype
    )
    self.check()
    parameters.declare(self, lsam_parts.table(self, in_features), rngs)

  def __call__(
    self,
    x: Tokens,
    *,
    initial_state: LSAMState | None = None,
    mask: Mask | None = None,
  ) -> tuple[Float[Array, "b s e"], LSAMState]:
    """Runs over the sequence; a masked token outputs zero."""
    params = parameters.arrays(self)
    return lsam_parts.run(self, params, x, initial_state, mask)
