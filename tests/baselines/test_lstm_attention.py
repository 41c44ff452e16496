"""The paper's two-layer LSTM with attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax import baselines
from tests import linen_tools

B, S, D = 2, 6, 4
MODEL = baselines.LSTMAttention(num_heads=2)
REAL = linen_tools.GAPS
MASK = jnp.array(REAL)


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
