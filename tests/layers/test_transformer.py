"""Positions, the pre-norm block and the encoder."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from nam_jax.layers import self_attention, transformer
from tests import linen_tools

B, S, D = 2, 5, 8
REAL = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], bool)
MASK = jnp.array(REAL)
ATTENTION = functools.partial(self_attention.SelfAttention, num_heads=2)
ENCODER = transformer.TransformerEncoder(ATTENTION, num_layers=1, mlp_dim=16)


class Nothing(nn.Module):
  """An attention layer without effect."""

  def __call__(self, x, *, mask=None, train=False):
    return jnp.zeros_like(x)


@pytest.fixture(scope="module")
def params():
  return linen_tools.random_params(ENCODER, jnp.zeros((B, S, D)))


def test_sinusoids_by_hand():
  sinusoids = jax.jit(transformer.sinusoids, static_argnums=1)
  signal = sinusoids(np.array([0.0, 3.0], np.float32), 5)
  angles = 3 / 10000 ** np.array([0, 0, 0.4, 0.4, 0.8])
  expected = np.where(np.arange(5) % 2, np.cos(angles), np.sin(angles))
  np.testing.assert_allclose(signal[0], [0, 1, 0, 1, 0], atol=1e-6)
  np.testing.assert_allclose(signal[1], expected, rtol=1e-5)


def test_block_without_attention_is_a_residual_mlp_of_the_norm(inputs):
  block = transformer.TransformerBlock(Nothing, mlp_dim=3)
  params = linen_tools.random_params(block, inputs)
  layers = jax.tree.map(np.float64, params["params"])
  first, second = layers["MLP_0"]["Dense_0"], layers["MLP_0"]["Dense_1"]
  x = np.float64(inputs)
  norm = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
  norm = norm * layers["LayerNorm_1"]["scale"] + layers["LayerNorm_1"]["bias"]
  a = norm @ first["kernel"] + first["bias"]
  gelu = a / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))
  expected = x + gelu @ second["kernel"] + second["bias"]
  actual = linen_tools.compiled(block.apply)(params, inputs)
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_padding_changes_no_real_output(inputs, positions):
  encoder = ENCODER.clone(positions=positions, max_len=9)
  params = linen_tools.random_params(encoder, inputs)
  apply = linen_tools.compiled(encoder.apply)
  outputs = apply(params, inputs, mask=MASK)
  longer = np.concatenate([inputs, inputs + 1], axis=1)[:, :9]
  mask = np.pad(REAL, ((0, 0), (0, 4)))
  padded = apply(params, longer, mask=mask)[:, :S]
  np.testing.assert_allclose(outputs[REAL], padded[REAL], rtol=1e-5, atol=1e-5)


def test_only_positions_tell_the_order_of_tokens(params, inputs):
  def run(encoder, x):
    return linen_tools.compiled(encoder.apply)(params, x)

  blind = ENCODER.clone(positions=None)
  np.testing.assert_allclose(
    run(blind, inputs[:, ::-1]),
    run(blind, inputs)[:, ::-1],
    rtol=1e-5,
    atol=1e-5,
  )
  flipped = run(ENCODER, inputs[:, ::-1])
  assert not np.allclose(flipped, run(ENCODER, inputs)[:, ::-1])


def test_number_of_parameters():
  encoder = ENCODER.clone(num_layers=2, positions="learned", max_len=10)
  params = linen_tools.random_params(encoder, jnp.zeros((B, S, D)))
  # Attention 4 D², MLP (2 D 16 + 16 + D), 2 norms; final norm, positions.
  block = 4 * D**2 + 2 * D * 16 + 16 + D + 2 * 2 * D
  expected = 2 * block + 2 * D + 10 * D
  assert sum(p.size for p in jax.tree.leaves(params)) == expected
  assert set(params["params"]) == {
    "posembed_input",
    "encoderblock_0",
    "encoderblock_1",
    "encoder_norm",
  }


def test_bad_lengths_and_positions_are_refused(inputs):
  def initialise(**fields):
    linen_tools.random_params(ENCODER.clone(**fields), inputs)

  with pytest.raises(ValueError, match="5 tokens is longer than max_len=4"):
    initialise(positions="learned", max_len=4)
  with pytest.raises(ValueError, match="needs max_len"):
    initialise(positions="learned")
  with pytest.raises(ValueError, match="got 'rotary'"):
    initialise(positions="rotary")
