"""Strictness for every test: no silent promotion, no silent warning."""

import jax
import pytest

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture
def key() -> jax.Array:
  """A fixed random key; split it for more."""
  return jax.random.key(0)
