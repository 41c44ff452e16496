"""LSAM as an nnx module."""

from typing import Any

from flax import nnx
from jaxtyping import Array, Float

from nam_jax.layers import lsam
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.nnx import parameters
from nam_jax.ops.lsam import LSAMState


class LSAM(nnx.Module, lsam.Settings):
  """`nam_jax.LSAM` for tokens of width `in_features`."""

  def __init__(
    self,
    in_features: int,
    features: int,
    num_heads: int = 1,
    *,
    rngs: nnx.Rngs,
    **settings: Any,
  ):
    lsam.Settings.__init__(self, features, num_heads, **settings)
    self.check()
    parameters.declare(self, lsam.table(self, in_features), rngs)

  def __call__(
    self,
    x: Tokens,
    *,
    initial_state: LSAMState | None = None,
    mask: Mask | None = None,
  ) -> tuple[Float[Array, "b s e"], LSAMState]:
    """Runs over the sequence; a masked token outputs zero."""
    return lsam.run(self, parameters.arrays(self), x, initial_state, mask)
