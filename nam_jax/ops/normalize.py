"""Unit vectors: the paper's mu(x)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from nam_jax.ops import precision

# Vectors shorter than this are scaled by its inverse instead of their own: the
# gradient of unit() stays below 1e4, and zero maps to zero.
_SHORTEST = 1e-4


class Scale(NamedTuple):
  """What the gradient of unit() needs besides its result."""

  length: Float[Array, "*b 1"]  # factor that scaled each vector
  turn: Float[Array, "*b 1"]  # the same, but zero where a vector was too short


def unit(x: Float[Array, "*b d"]) -> Float[Array, "*b d"]:
  """x / |x| along the last axis, with a finite gradient at x = 0.

  Every vector longer than 1e-4 comes out with length one; shorter ones are
  scaled by 1e4. Computed in float32 for narrower types.
  """
  return unit_and_scale(precision.widen(x))[0].astype(x.dtype)


def unit_and_scale(
  x: Float[Array, "*b d"],
) -> tuple[Float[Array, "*b d"], Scale]:
  """unit(x) in the type of x, and what `unit_back` needs."""
  square = jnp.sum(x * x, axis=-1, keepdims=True)
  length = jax.lax.rsqrt(jnp.maximum(square, _SHORTEST**2))
  turn = jnp.where(square > _SHORTEST**2, length, jnp.zeros_like(length))
  return x * length, Scale(length, turn)


def unit_back(
  y: Float[Array, "*b d"], scale: Scale, dy: Float[Array, "*b d"]
) -> Float[Array, "*b d"]:
  """The gradient of x, from y = unit(x) and its gradient."""
  # A product of matrices, which on a CPU is faster than a sum.
  exact = jax.lax.Precision.HIGHEST
  along = jnp.einsum("...d,...d->...", y, dy, precision=exact)[..., None]
  return scale.length * dy - (scale.turn * along) * y
