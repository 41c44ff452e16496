"""Softmax self-attention with the common call interface."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.layers import self_attention, transformer
from nam_jax.layers.attention_fn import linear_attention_fn
from tests import linen_tools

B, S, D = 2, 5, 8
REAL = np.array([[1, 1, 0, 1, 0], [0, 1, 1, 0, 1]], bool)


def initialise(layer, **options):
  return linen_tools.random_params(layer, jnp.zeros((B, S, D)), **options)


def test_one_head_by_hand(inputs):
  layer = self_attention.SelfAttention(num_heads=1, qkv_dim=4)
  params = initialise(layer)
  w = {k: np.float64(p["kernel"]) for k, p in params["params"].items()}
  x = np.float64(inputs) * REAL[..., None]
  q, k, v = (x @ w[name][:, 0] for name in ("query", "key", "value"))
  scores = np.exp(q @ k.swapaxes(1, 2) / 2) * REAL[:, None]
  expected = scores / scores.sum(-1, keepdims=True) @ v @ w["out"][0]
  actual = linen_tools.compiled(layer.apply)(params, inputs, mask=REAL)
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
  "attention_fn",
  [self_attention.nn.dot_product_attention, linear_attention_fn],
)
def test_padded_tokens_change_no_real_output(inputs, attention_fn):
  layer = self_attention.SelfAttention(num_heads=2, attention_fn=attention_fn)
  params = initialise(layer)
  apply = linen_tools.compiled(layer.apply)
  outputs = apply(params, inputs, mask=REAL)
  for b in range(B):
    alone = apply(params, inputs[b : b + 1, REAL[b]])[0]
    np.testing.assert_allclose(outputs[b, REAL[b]], alone, rtol=1e-5, atol=1e-5)


def test_finite_without_any_real_token(inputs):
  layer = self_attention.SelfAttention(num_heads=2)
  apply = linen_tools.compiled(layer.apply)
  outputs = apply(initialise(layer), inputs, mask=np.zeros((B, S), bool))
  assert np.isfinite(outputs).all()


def test_it_keeps_no_memory_to_continue_from(inputs):
  attention = functools.partial(self_attention.SelfAttention, num_heads=2)
  encoder = transformer.TransformerEncoder(attention, 1, 8)
  params = linen_tools.random_params(encoder, inputs)
  message = r"SelfAttention keeps no memory to continue from; NAMAttention in"
  with pytest.raises(ValueError, match=message):
    encoder.apply(params, jnp.asarray(inputs), None, method="continue_from")


def test_projections_have_biases_on_demand():
  bare = initialise(self_attention.SelfAttention(num_heads=2, qkv_dim=4))
  assert jax.tree.map(np.shape, bare["params"]) == {
    "query": {"kernel": (8, 2, 2)},
    "key": {"kernel": (8, 2, 2)},
    "value": {"kernel": (8, 2, 2)},
    "out": {"kernel": (2, 2, 8)},
  }
  biased = initialise(self_attention.SelfAttention(num_heads=2, use_bias=True))
  assert all("bias" in p for p in biased["params"].values())


def test_weights_drop_out_in_training_only(inputs):
  layer = self_attention.SelfAttention(num_heads=2, dropout_rate=0.5)
  params = initialise(layer)

  @linen_tools.compiled
  def train(key, x):
    return layer.apply(params, x, train=True, rngs={"dropout": key})

  first, second = (train(jax.random.key(i), inputs) for i in range(2))
  assert not np.allclose(first, second)
  full = self_attention.SelfAttention(num_heads=2)
  np.testing.assert_array_equal(
    linen_tools.compiled(layer.apply)(params, inputs),
    linen_tools.compiled(full.apply)(params, inputs),
  )


def test_heads_must_divide_the_width():
  layer = self_attention.SelfAttention(num_heads=3)
  with pytest.raises(ValueError, match="num_heads=3 does not divide qkv_dim=8"):
    initialise(layer)


def test_an_attention_fn_that_would_drop_an_argument_is_refused():
  def blind(query, key, value, **kwargs):
    return value

  def masked(query, key, value, mask=None):
    return value

  layer = self_attention.SelfAttention(num_heads=2, attention_fn=blind)
  with pytest.raises(ValueError, match="does not take 'mask'"):
    initialise(layer, mask=REAL)
  layer = self_attention.SelfAttention(
    num_heads=2, dropout_rate=0.1, attention_fn=masked
  )
  with pytest.raises(ValueError, match="does not take 'dropout_rng'"):
    initialise(layer)
