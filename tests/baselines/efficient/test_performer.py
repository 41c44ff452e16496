"""Performer attention against all pairs of features in float64."""

import functools

import jax
import numpy as np
import pytest
from flax import errors
from flax import linen as nn

from nam_jax.baselines.efficient import layer_rng, performer
from tests import agreement
from tests.reference import attention as dense
from tests.reference import attention_layers
from tests.reference import performer as reference

GENERALIZED = performer.GeneralizedPerformer(num_heads=2)
SOFTMAX = performer.SoftmaxPerformer(num_heads=2, nb_features=6)
LAYERS = [GENERALIZED, SOFTMAX]
KERNELS = {
  "query": {"kernel": (8, 2, 4)},
  "key": {"kernel": (8, 2, 4)},
  "value": {"kernel": (8, 2, 4)},
  "out": {"kernel": (2, 4, 8)},
}


def draw(rng, count, k, ortho_scaling=0.0):
  normal = rng.normal(size=performer.normal_shape(count, k))
  directions = jax.jit(performer.random_directions, static_argnums=(1, 2))
  return np.float64(directions(np.float32(normal), count, ortho_scaling))


def make_twin(layer, params):
  if layer == GENERALIZED:
    features = functools.partial(reference.relu_features, epsilon=1e-3)
  else:
    features = functools.partial(
      reference.softmax_features,
      directions=draw(layer_rng.layer_rng(layer.bind(params)), 6, 4),
      epsilon=performer.EPSILON,
    )
  return functools.partial(reference.attention, features=features)


@pytest.mark.parametrize("s", [1, 7, 37])
@pytest.mark.parametrize("layer", LAYERS)
def test_layer_equals_all_pairs_of_features(layer, s):
  attention_layers.assert_equals_twin(layer, s, make_twin)


@pytest.mark.parametrize("layer", LAYERS)
def test_gradient(layer):
  attention_layers.assert_gradient_equals_twin(layer, 7, make_twin)


@pytest.mark.parametrize("layer", LAYERS)
def test_padding_changes_no_real_output(layer):
  attention_layers.assert_padding_is_inert(layer, 7, 37)


@pytest.mark.parametrize("layer", LAYERS)
def test_finite_without_any_real_token(layer):
  attention_layers.assert_finite_without_real_tokens(layer, 7)


@pytest.mark.parametrize("layer", LAYERS)
def test_bfloat16(layer):
  attention_layers.assert_close_in_bfloat16(layer, 7)


@pytest.mark.parametrize("layer", LAYERS)
def test_cost_is_linear(layer):
  once, twice = (attention_layers.flops(layer, s) for s in (200, 400))
  assert 1.8 * once < twice < 2.1 * once


@pytest.mark.parametrize("layer", LAYERS)
def test_parameters_are_the_four_projections(layer):
  assert attention_layers.shapes(layer) == KERNELS


def test_what_tokens_write_drops_out_in_training_only():
  attention_layers.assert_drops_in_training_only(GENERALIZED, 7)


@attention_layers.compiled
def attend(q, k, v, mask, directions):
  phi_q, phi_k = performer.softmax_features(q, k, directions, mask=mask)
  return performer.kernel_attention(phi_q, phi_k, v, mask=mask), phi_k


def test_many_features_estimate_the_softmax():
  rng = np.random.default_rng(0)
  q, k, v = np.float32(0.6 * rng.normal(size=(3, 1, 9, 2, 4)))
  mask = np.arange(9)[None] < 7
  actual, _ = attend(q, k, v, mask, np.float32(draw(rng, 4096, 4)))
  expected = dense.masked_attention(q, k, v, np.broadcast_to(mask, (9, 9)))
  assert agreement.relative(actual, expected) < 0.05
  mean = np.broadcast_to(v[:, :7].mean(1, keepdims=True), v.shape)
  assert agreement.relative(mean, expected) > 0.2


def test_without_any_key_outputs_are_zero_and_features_finite():
  x = np.ones((1, 2, 1, 4), np.float32)
  outputs, features = attend(x, x, x, np.zeros((1, 2), bool), x[0, :, 0])
  assert (outputs == 0).all()
  assert np.isfinite(features).all()


def test_directions_are_orthogonal_in_groups():
  vectors = draw(np.random.default_rng(0), 6, 4, 1.0)
  for group in (vectors[:4], vectors[4:]):
    products = group @ group.T
    np.testing.assert_allclose(products, 4 * np.eye(len(group)), atol=1e-5)


def test_directions_are_distributed_as_normal_vectors():
  vectors = draw(np.random.default_rng(0), 4000, 4)
  np.testing.assert_allclose(vectors.mean(0), 0, atol=0.08)
  np.testing.assert_allclose(vectors.T @ vectors / 4000, np.eye(4), atol=0.08)
  np.testing.assert_allclose((vectors**2).sum(-1).var(), 8, rtol=0.1)


def test_every_layer_has_its_own_directions():
  class Two(nn.Module):
    @nn.compact
    def __call__(self, x):
      return [
        performer.SoftmaxPerformer(2, nb_features=6, name=name)(x)
        for name in ("first", "second")
      ]

  x, _ = attention_layers.tokens(3)
  params = attention_layers.params_of(SOFTMAX)["params"]
  params = {"params": {"first": params, "second": params}}
  first, second = attention_layers.compiled(Two().apply)(params, x)
  assert not np.allclose(first, second)


def test_training_draws_new_directions_unless_told_not_to():
  x, _ = attention_layers.tokens(3)
  params = attention_layers.params_of(SOFTMAX)
  fixed = SOFTMAX.clone(redraw_features=False)

  @attention_layers.compiled
  def run(params, x, key):
    return (
      SOFTMAX.apply(params, x, train=True, rngs={"dropout": key}),
      fixed.apply(params, x, train=True),
      SOFTMAX.apply(params, x),
      SOFTMAX.clone(seed=1).apply(params, x),
    )

  redrawn, kept, own, other = run(params, x, jax.random.key(1, impl="rbg"))
  np.testing.assert_array_equal(kept, own)
  assert not np.allclose(redrawn, own)
  assert not np.allclose(other, own)
  with pytest.raises(errors.InvalidRngError, match="dropout"):
    jax.eval_shape(functools.partial(SOFTMAX.apply, train=True), params, x)


def test_unknown_scalings_are_refused():
  with pytest.raises(ValueError, match=r"ortho_scaling=2\.0 must be 0 or 1"):
    SOFTMAX.clone(ortho_scaling=2.0)
