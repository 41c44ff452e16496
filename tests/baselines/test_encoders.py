"""What all encoders support: dropout, bfloat16, lowering for accelerators."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors

from nam_jax import baselines
from nam_jax.layers import self_attention, transformer
from tests import linen_tools

B, S, D = 2, 5, 8
MASK = jnp.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], bool)


def make(name, dtype=None):
  attention = functools.partial(self_attention.SelfAttention, num_heads=2)
  attention = functools.partial(attention, dtype=dtype)
  return {
    "transformer": transformer.TransformerEncoder(attention, 2, 16),
    "universal_transformer": baselines.UniversalTransformer(
      attention, num_steps=3, mlp_dim=16, halting_threshold=0.9
    ),
    "lstm_attention": baselines.LSTMAttention(num_heads=2),
  }[name].clone(dtype=dtype)


@pytest.fixture(
  scope="module",
  params=["transformer", "universal_transformer", "lstm_attention"],
)
def name(request):
  return request.param


@pytest.fixture(scope="module")
def params(name):
  return linen_tools.random_params(make(name), jnp.zeros((B, S, D)))


def test_dropout_acts_in_training_only(name, params):
  inputs, dropping = jnp.zeros((B, S, D)), make(name).clone(dropout_rate=0.5)
  jax.eval_shape(dropping.apply, params, inputs)
  train = functools.partial(dropping.apply, train=True)
  with pytest.raises(errors.InvalidRngError, match="dropout"):
    jax.eval_shape(train, params, inputs)


def test_bfloat16_gradients_are_finite_at_zero_inputs(name, params):
  encoder = make(name, jnp.bfloat16)

  @linen_tools.compiled
  def grad(params):
    def total(params):
      outputs = encoder.apply(params, jnp.zeros((B, S, D)), mask=MASK)
      assert outputs.dtype == jnp.bfloat16
      return jnp.sum(outputs.astype(jnp.float32) ** 2)

    return jax.grad(total)(params)

  # flax's LayerNorm itself promotes bfloat16 to float32.
  with jax.numpy_dtype_promotion("standard"):
    gradients = grad(params)
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradients))


def test_gradient_of_vmap_lowers_for_accelerators(name, params):
  def total(params, inputs):
    return jnp.sum(make(name).apply(params, inputs, mask=MASK))

  models = jax.tree.map(lambda p: np.stack([p, p]), params)
  grads = jax.jit(jax.vmap(jax.grad(total), (0, None)))
  traced = grads.trace(models, jnp.ones((B, S, D)))
  for platform in ("cuda", "tpu"):
    assert traced.lower(lowering_platforms=(platform,))
