"""The type in which a memory is kept and sums are taken."""

import jax.numpy as jnp


def accumulator(dtype: jnp.dtype) -> jnp.dtype:
  """float32, or the given type where it is wider."""
  return jnp.dtype(jnp.float64 if dtype == jnp.float64 else jnp.float32)
