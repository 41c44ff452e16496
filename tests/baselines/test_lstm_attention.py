"""The paper's two-layer LSTM with attention."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors

from nam_jax import baselines
from tests import linen_tools

B, S, D = 2, 6, 4
MODEL = baselines.LSTMAttention(num_heads=2)
REAL = np.array([[1, 1, 0, 1, 0, 1], [0, 1, 1, 1, 1, 0]], bool)
MASK = jnp.array(REAL)


@pytest.fixture(scope="module")
def inputs():
  return np.float32(np.random.default_rng(0).normal(size=(B, S, D)))


@pytest.fixture(scope="module")
def params():
  return linen_tools.random_params(MODEL, jnp.zeros((B, S, D)))


@pytest.fixture(scope="module")
def apply():
  return linen_tools.compiled(MODEL.apply)


def test_padded_tokens_change_no_real_output(params, inputs, apply):
  outputs = apply(params, inputs, mask=MASK)
  for b in range(B):
    alone = apply(params, inputs[b : b + 1, REAL[b]])[0]
    np.testing.assert_allclose(outputs[b, REAL[b]], alone, rtol=1e-5, atol=1e-5)


def test_every_output_sees_every_input(params, inputs):
  # The Jacobian's norm between all pairs of tokens.
  def one(x):
    return MODEL.apply(params, x[None])[0]

  jacobian = linen_tools.compiled(jax.jacrev(one))(inputs[0])  # [s d s d]
  assert (np.abs(jacobian).sum((1, 3)) > 0).all()


def test_dropout_acts_in_training_only(params, inputs):
  dropping = MODEL.clone(dropout_rate=0.5)
  jax.eval_shape(dropping.apply, params, inputs)
  train = functools.partial(dropping.apply, train=True)
  with pytest.raises(errors.InvalidRngError, match="dropout"):
    jax.eval_shape(train, params, inputs)


def test_gradient_of_vmap_lowers_for_accelerators(params, inputs):
  def total(params, inputs):
    return jnp.sum(MODEL.apply(params, inputs, mask=MASK))

  models = jax.tree.map(lambda p: np.stack([p, p]), params)
  grads = jax.jit(jax.vmap(jax.grad(total), (0, None)))
  traced = grads.trace(models, inputs)
  for platform in ("cuda", "tpu"):
    assert traced.lower(lowering_platforms=(platform,))


def test_bfloat16_gradients_are_finite_at_zero_inputs(params):
  model = MODEL.clone(dtype=jnp.bfloat16)

  @linen_tools.compiled
  def grad(params):
    def total(params):
      outputs = model.apply(params, jnp.zeros((B, S, D)), mask=MASK)
      assert outputs.dtype == jnp.bfloat16
      return jnp.sum(outputs.astype(jnp.float32) ** 2)

    return jax.grad(total)(params)

  assert all(np.isfinite(g).all() for g in jax.tree.leaves(grad(params)))
