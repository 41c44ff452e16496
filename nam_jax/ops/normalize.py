"""Unit vectors: the paper's mu(x)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from nam_jax.ops import precision

# Vectors shorter than this are scaled by its inverse instead of their own: the
# gradient of unit() stays below 1e4, and zero maps to zero.
_SHORTEST = 1e-4


def unit(x: Float[Array, "*b d"]) -> Float[Array, "*b d"]:
  """x / |x| along the last axis, with a finite gradient at x = 0.

  Every vector longer than 1e-4 comes out with length one; shorter ones are
  scaled by 1e4. Computed in float32 for narrower types.
  """
  wide = x.astype(precision.accumulator(x.dtype))
  square = jnp.sum(wide * wide, axis=-1, keepdims=True)
  return (wide * jax.lax.rsqrt(jnp.maximum(square, _SHORTEST**2))).astype(
    x.dtype
  )
