"""The Linear Recurrent Unit against its equations in complex128."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.baselines import lru
from tests import agreement, linen_tools
from tests.reference import attention_layers
from tests.reference import lru as reference

D, N = attention_layers.D, 6
LAYER = lru.LRU(N)


def twin(params, x, mask):
  wide = jax.tree.map(np.float64, (params, x))
  return reference.layer(*wide, mask)


@pytest.mark.parametrize("s", [1, 63, 100])
def test_outputs(s):
  x, mask = attention_layers.tokens(s)
  params = attention_layers.params_of(LAYER)
  outputs = attention_layers.apply(LAYER)(params, x, mask=mask)
  agreement.assert_agree(outputs[mask], twin(params, x, mask)[mask], 2e-6)


def test_gradients_of_every_parameter():
  x, mask = attention_layers.tokens(63)
  params = attention_layers.params_of(LAYER)
  actual = attention_layers.gradient(LAYER)(params, x, mask)
  leaves, tree = jax.tree.flatten(jax.tree.map(np.float64, (params, x)))
  rng = np.random.default_rng(0)

  def total(leaves):
    params, x = jax.tree.unflatten(tree, leaves)
    return (reference.layer(params, x, mask)[mask] ** 2).sum()

  for i, gradient in enumerate(jax.tree.leaves(actual)):
    step = rng.normal(size=gradient.shape)
    up, down = (
      total([*leaves[:i], leaves[i] + size * step, *leaves[i + 1 :]])
      for size in (1e-5, -1e-5)
    )
    expected = (up - down) / 2e-5
    np.testing.assert_allclose((gradient * step).sum(), expected, rtol=1e-4)


def test_padding_changes_nothing():
  attention_layers.assert_padding_is_inert(LAYER, 63, 100)


def test_bfloat16():
  x, mask = attention_layers.tokens(63)
  params = attention_layers.params_of(LAYER)
  narrow = LAYER.clone(dtype=jnp.bfloat16)
  outputs = attention_layers.apply(narrow)(params, x, mask=mask)
  assert outputs.dtype == jnp.bfloat16
  expected = twin(params, x, mask)[mask]
  agreement.assert_agree(np.float32(outputs[mask]), expected, 2e-2)


def test_outputs_drop_out_in_training():
  x, _ = attention_layers.tokens(7)
  layer = LAYER.clone(dropout_rate=0.5)
  params = attention_layers.params_of(LAYER)

  @attention_layers.compiled
  def apply(params, x):
    rngs = {"dropout": jax.random.key(0)}
    return [layer.apply(params, x, train=t, rngs=rngs) for t in (True, False)]

  trained, tested = apply(params, x)
  assert 0.3 < (trained == 0).mean() < 0.7
  assert (tested != 0).all()


def test_lambda_starts_in_a_ring_and_states_equally_large():
  layer = lru.LRU(4000, r_min=0.5, r_max=0.9, max_phase=1.0)
  p = jax.jit(layer.init)(jax.random.key(0), jnp.zeros((1, 2, D)))["params"]
  assert jax.tree.map(np.shape, p) == {
    "nu": (4000,),
    "theta": (4000,),
    "log_gamma": (4000,),
    "B": (2, D, 4000),
    "C": (2, 2, 4000, D),
    "D": (D,),
    "gate": {"kernel": (D, D), "bias": (D,)},
  }
  area = np.exp(-2 * np.exp(np.float64(p["nu"])))  # |lambda|^2
  angle = np.exp(np.float64(p["theta"]))
  for numbers, low, high in ((area, 0.25, 0.81), (angle, 0, 1)):
    quartiles = np.quantile(numbers, [0, 0.25, 0.5, 0.75, 1])
    np.testing.assert_allclose(
      quartiles, np.linspace(low, high, 5), atol=0.03 * (high - low)
    )
  np.testing.assert_allclose(np.exp(2 * p["log_gamma"]), 1 - area, rtol=1e-4)


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"r_min": 0.999}, "r_min=0.999 and r_max=0.999 must satisfy"),
    ({"r_max": 1.0}, "r_max=1.0 must satisfy 0 <= r_min < r_max < 1"),
    ({"max_phase": 0.0}, "max_phase=0.0 must be more than 0"),
  ],
)
def test_a_ring_that_is_none_is_refused(options, message):
  with pytest.raises(ValueError, match=message):
    lru.LRU(**options)


def test_gradients_are_finite_at_the_sizes_of_the_arena():
  layer, x = lru.LRU(), linen_tools.normal(1, 4096, D)

  @jax.jit
  def learn(x):
    params = layer.init(jax.random.key(0), x)

    def total(params):
      return jnp.mean(layer.apply(params, x) ** 2)

    return jax.value_and_grad(total)(params)

  value, gradient = learn(x)
  assert 0.01 < value < 10
  assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
