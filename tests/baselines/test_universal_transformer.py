"""Shared steps, adaptive halting and its ponder cost."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax import baselines
from nam_jax.baselines import universal_transformer
from nam_jax.layers import positions, self_attention, transformer_block
from tests import linen_tools

B, S, D, STEPS = 2, 5, 8, 3
ATTENTION = functools.partial(self_attention.SelfAttention, num_heads=2)
PLAIN = baselines.UniversalTransformer(ATTENTION, num_steps=STEPS, mlp_dim=16)
ADAPTIVE = PLAIN.clone(halting_threshold=0.9)
REAL = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], bool)
MASK = jnp.array(REAL)


@pytest.fixture(scope="module")
def params():
  params = linen_tools.random_params(ADAPTIVE, jnp.zeros((B, S, D)))
  # Tokens stop after different numbers of steps.
  params["params"]["stop"]["bias"] = np.full(1, 3, np.float32)
  return params


@pytest.fixture(scope="module")
def adaptive():
  @linen_tools.compiled
  def run(params, x, mask=None):
    outputs, sown = ADAPTIVE.apply(
      params, x, mask=mask, mutable="intermediates"
    )
    return outputs, sown["intermediates"]["ponder_cost"][0]

  return run


def with_halting_bias(params, bias):
  stop = {"kernel": np.zeros((D, 1), "f"), "bias": np.full((1,), bias, "f")}
  return {"params": params["params"] | {"stop": stop}}


@pytest.fixture(scope="module")
def step(params):
  """The n-th step, given a state: encodings, then the shared block."""
  block = transformer_block.TransformerBlock(ATTENTION, mlp_dim=16)
  apply = linen_tools.compiled(block.apply)
  signals = jax.jit(positions.sinusoids, static_argnums=1)(
    np.arange(S, dtype=np.float32), D
  )
  signals = np.asarray(signals)

  def run(n, state):
    state = state + signals + signals[n]
    return apply({"params": params["params"]["block"]}, state, mask=REAL)

  return run


def normalise(params, x):
  x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
  return (
    x * params["params"]["norm"]["scale"] + params["params"]["norm"]["bias"]
  )


def test_plain_steps_equal_a_loop_over_the_block(params, inputs, step):
  state = inputs
  for n in range(STEPS):
    state = step(n, state)
  actual = linen_tools.compiled(PLAIN.apply)(params, inputs, mask=REAL)
  np.testing.assert_allclose(
    actual, normalise(params, state), rtol=1e-4, atol=1e-4
  )


def test_stopped_tokens_keep_their_state(params, inputs, step, adaptive):
  state, halted = inputs.copy(), np.zeros((B, S))
  output, stop = np.zeros((B, S, D)), params["params"]["stop"]
  steps_taken = np.zeros((B, S))
  for n in range(STEPS):
    new = step(n, state)
    p = 1 / (1 + np.exp(-(new @ stop["kernel"] + stop["bias"])))[..., 0]
    for token in np.ndindex(B, S):
      if halted[token] < 1:
        stops = halted[token] + p[token] > 0.9 or n == STEPS - 1
        weight = 1 - halted[token] if stops else p[token]
        halted[token] = 1 if stops else halted[token] + weight
        output[token] += weight * new[token]
        state[token] = new[token]
        steps_taken[token] += 1
  assert len(np.unique(steps_taken)) > 1
  actual, _ = adaptive(params, inputs, REAL)
  np.testing.assert_allclose(
    actual, normalise(params, output), rtol=1e-4, atol=1e-4
  )


def halt_twice_or_thrice(probabilities):
  """Two tokens: 0 stops at the second step, 1 is stopped by the third."""
  halting = universal_transformer.Halting(
    jnp.zeros((1, 2)), jnp.zeros((1, 2, 1)), jnp.zeros((1, 2))
  )
  for n, p in enumerate(probabilities):
    state = jnp.full((1, 2, 1), 10.0**n)
    last = jnp.array(n == 2)
    halting = universal_transformer.halt(halting, p, state, last, 0.9)
  return halting


PROBABILITIES = np.float32([[[0.3, 0.1]], [[0.7, 0.2]], [[0.6, 0.3]]])


def test_halting_by_hand():
  halting = linen_tools.compiled(halt_twice_or_thrice)(PROBABILITIES)
  np.testing.assert_allclose(halting.halted, [[1, 1]])
  # 0.3 * 1 + 0.7 * 10 and 0.1 * 1 + 0.2 * 10 + 0.7 * 100.
  np.testing.assert_allclose(halting.output[..., 0], [[7.3, 72.1]], rtol=1e-5)
  # Steps plus remainder.
  np.testing.assert_allclose(halting.ponder, [[2.7, 3.7]], rtol=1e-5)


def test_ponder_cost_falls_with_the_probabilities_before_the_last():
  def cost(probabilities):
    return jnp.sum(halt_twice_or_thrice(probabilities).ponder)

  gradient = linen_tools.compiled(jax.grad(cost))(PROBABILITIES)
  np.testing.assert_allclose(gradient[:, 0], [[-1, -1], [0, -1], [0, 0]])


def test_stopping_at_once_equals_one_plain_step(params, inputs, adaptive):
  params = with_halting_bias(params, 20.0)
  outputs, cost = adaptive(params, inputs)
  one = PLAIN.clone(num_steps=1)
  expected = linen_tools.compiled(one.apply)(params, inputs)
  np.testing.assert_allclose(outputs, expected, rtol=1e-5, atol=1e-5)
  np.testing.assert_allclose(cost, 2.0)


def test_never_stopping_equals_all_plain_steps(params, inputs, adaptive):
  params = with_halting_bias(params, -20.0)
  outputs, cost = adaptive(params, inputs)
  expected = linen_tools.compiled(PLAIN.apply)(params, inputs)
  np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-4)
  np.testing.assert_allclose(cost, STEPS + 1)


def test_padding_changes_neither_outputs_nor_cost(params, inputs, adaptive):
  outputs, cost = adaptive(params, inputs, MASK)
  longer = np.concatenate([inputs, inputs + 1], axis=1)
  mask = np.pad(REAL, ((0, 0), (0, S)))
  padded, padded_cost = adaptive(params, longer, mask)
  np.testing.assert_allclose(
    outputs[REAL], padded[:, :S][REAL], rtol=1e-5, atol=1e-5
  )
  np.testing.assert_allclose(cost, padded_cost, rtol=1e-6)


def test_threshold_outside_the_unit_interval_is_refused(inputs):
  model = PLAIN.clone(halting_threshold=1.5)
  with pytest.raises(ValueError, match=r"halting_threshold=1\.5"):
    model.init(jax.random.key(0), inputs)
