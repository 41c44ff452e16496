"""NAM attention as an nnx module."""

from typing import Any

from flax import nnx

from nam_jax.layers import nam_heads, nam_settings
from nam_jax.layers.nam_heads import State
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.nnx import parameters


class NAMAttention(nnx.Module, nam_settings.Settings):
  """`nam_jax.NAMAttention` for tokens of width `in_features`.

  Dropout is on in training: see `train()` and `eval()` of nnx modules.
  """

  def __init__(
    self,
    in_features: int,
    num_heads: int,
    mode: str = "bidirectional",
    *,
    rngs: nnx.Rngs,
    **settings: Any,
  ):
    nam_settings.Settings.__init__(self, num_heads, mode, **settings)
    self.check()
    parameters.declare(self, nam_settings.table(self, in_features), rngs)
    rngs_kept = rngs if self.dropout_rate else None
    self.dropout = nnx.Dropout(self.dropout_rate, rngs=rngs_kept)

  def __call__(self, x: Tokens, *, mask: Mask | None = None) -> Tokens:
    """Attends from every token to real tokens, where the mask is True."""
    return self._attend(x, None, mask)[0]

  def continue_from(
    self, x: Tokens, memory: State | None, *, mask: Mask | None = None
  ) -> tuple[Tokens, State]:
    """(outputs, memory), from the memory that an earlier call returned."""
    self.check_continues()
    return self._attend(x, memory, mask)

  def _attend(self, x, memory, mask):
    params = parameters.arrays(self)
    heads, memory = nam_heads.read(self, params, x, memory, mask)
    return nam_heads.join(self, params, self.dropout(heads)), memory
