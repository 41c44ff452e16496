"""What holds for LSAM and the NAM Turing machine alike."""

import jax
import jax.numpy as jnp
import pytest

from nam_jax.layers.lsam import LSAM
from nam_jax.layers.nam_tm import NAMTuringMachine
from tests.agreement import Random, assert_agree

LAYERS = {
  "lsam": LSAM(features=8, num_heads=2, bidirectional=True),
  "nam_tm": NAMTuringMachine(num_heads=2),
}
layers = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)


def loss_of(layer):
  def loss(variables, x):
    return jnp.sum(layer.apply(variables, x)[0].astype(jnp.float32) ** 2)

  return loss


@layers
def test_gradients_are_finite_at_zero(layer):
  x = jnp.zeros((2, 5, 8))
  variables = jax.tree.map(jnp.zeros_like, layer.init(jax.random.key(0), x))
  grads = jax.jit(jax.grad(loss_of(layer), (0, 1)))(variables, x)
  assert all(jnp.isfinite(g).all() for g in jax.tree.leaves(grads))


@layers
def test_vmap_jit_grad_and_checkpoint_compose(layer):
  x = Random().normal(3, 2, 6, 8)
  variables = layer.init(jax.random.key(0), x[0])
  gradient = jax.grad(jax.checkpoint(loss_of(layer)), (0, 1))
  together = jax.jit(jax.vmap(gradient, (None, 0)))(variables, x)
  for i in range(3):
    alone = jax.jit(jax.grad(loss_of(layer), (0, 1)))(variables, x[i])
    assert_agree(jax.tree.map(lambda g, i=i: g[i], together), alone, 1e-5)


@layers
def test_bfloat16_stays_near_float32(layer):
  x = Random().normal(2, 12, 8).astype(jnp.bfloat16)
  variables = layer.init(jax.random.key(0), x.astype(jnp.float32))
  exact, _ = layer.apply(variables, x.astype(jnp.float32))
  outputs, state = layer.clone(dtype=jnp.bfloat16).apply(variables, x)
  assert outputs.dtype == jnp.bfloat16
  assert all(leaf.dtype == jnp.float32 for leaf in state)
  # Weights and projections are rounded to 2^-9; the recurrence is not.
  assert_agree(outputs.astype(jnp.float32), exact, 2**-5)
