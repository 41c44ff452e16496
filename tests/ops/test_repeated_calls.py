"""Consecutive calls never wait for each other."""

import jax
import jax.numpy as jnp

import nam_jax
from tests.agreement import Random


def test_a_thousand_gradients_in_a_row_never_hang():
  rng, shape = Random(), (2, 128, 4, 16)
  args = rng.unit(*shape), rng.unit(*shape), rng.normal(*shape)
  gradient = jax.jit(
    jax.grad(lambda *args: jnp.sum(nam_jax.memory_chunked(*args)[0]), (0, 1, 2))
  )
  for _ in range(1000):
    jax.block_until_ready(gradient(*args))
