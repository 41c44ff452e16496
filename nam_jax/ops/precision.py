"""The dtype in which memories are kept and sums are taken."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, DTypeLike, Float


def accumulator(dtype: DTypeLike) -> np.dtype:
  """float32, or the given type where it is wider."""
  wide = np.dtype(dtype) == jnp.float64
  return np.dtype(jnp.float64 if wide else jnp.float32)


def widen(x: Float[Array, "..."]) -> Float[Array, "..."]:
  """x in the type in which its sums are taken."""
  return x.astype(accumulator(x.dtype))
