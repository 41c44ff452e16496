"""The hand-written backward pass against automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.ops import lstm
from tests.reference import lstm as reference

B, S, X, D = 3, 7, 5, 4
MASK = jnp.array([[1, 1, 0, 1, 0, 1, 0], [0, 0, 1, 1, 1, 1, 1], [0] * 7], bool)


def arguments(dtype=jnp.float32):
  shapes = [(B, S, X), (X, 4 * D), (D, 4 * D), (4 * D,), (B, D), (B, D)]
  rng = np.random.default_rng(0)
  arrays = [jnp.asarray(rng.normal(size=shape), dtype) for shape in shapes]
  return (*arrays[:4], lstm.LSTMState(*arrays[4:]))


def loss(function, **options):
  def scalar(*args):
    outputs, state = function(*args, **options)
    weights = jnp.sin(jnp.arange(outputs.size, dtype=jnp.float32))
    outputs = outputs.astype(jnp.float32)
    total = jnp.sum(weights.reshape(outputs.shape) * outputs)
    total += jnp.sum(state.cell**2) + jnp.sum(jnp.cos(state.hidden))
    return total, (outputs, state)

  return scalar


def assert_close(actual, expected, tol):
  def check(a, e):
    np.testing.assert_allclose(a, e, rtol=tol, atol=tol)

  jax.tree.map(check, actual, expected)


@pytest.mark.parametrize(
  ("mask", "reverse"), [(None, False), (MASK, False), (MASK, True)]
)
def test_outputs_state_and_gradients_equal_the_plain_scan(mask, reverse):
  args = arguments()

  def run(function):
    scalar = loss(function, mask=mask, reverse=reverse)
    return jax.jit(jax.grad(scalar, range(5), has_aux=True))(*args)

  assert_close(run(lstm.lstm), run(reference.lstm), tol=1e-4)


def test_one_step_by_hand():
  # All gates see 0 but the forget gate 1: c' = 2 σ(1), h' = tanh(c') / 2.
  state = lstm.LSTMState(jnp.full((1, 1), 2.0), jnp.full((1, 1), 3.0))
  bias = jnp.array([0.0, 1.0, 0.0, 0.0])
  outputs, final = jax.jit(lstm.lstm)(
    jnp.ones((1, 1, 1)), jnp.zeros((1, 4)), jnp.zeros((1, 4)), bias, state
  )
  np.testing.assert_allclose(final.cell, [[1.4621172]], rtol=1e-6)
  np.testing.assert_allclose(final.hidden, [[0.4490315]], rtol=1e-6)
  np.testing.assert_allclose(outputs[0], final.hidden)


def test_second_derivative_equals_a_difference_of_first_ones():
  args = arguments()
  direction = jnp.sign(args[2])

  @jax.jit
  def gradient(kernel):
    scalar = loss(lstm.lstm, mask=MASK)
    swapped = (*args[:2], kernel, *args[3:])
    return jax.grad(scalar, 2, has_aux=True)(*swapped)[0]

  def slope(kernel):
    return jnp.sum(direction * gradient(kernel))

  ahead, behind = (gradient(args[2] + h * direction) for h in (5e-3, -5e-3))
  expected = (ahead - behind) / 1e-2
  assert_close(jax.jit(jax.grad(slope))(args[2]), expected, tol=2e-2)


def test_vmap_over_models_equals_a_loop():
  args = arguments()
  kernels = jnp.stack([args[2], 2 * args[2]])

  def grad(kernel):
    swapped = (*args[:2], kernel, *args[3:])
    return jax.grad(loss(lstm.lstm, mask=MASK), 2, has_aux=True)(*swapped)[0]

  one = jax.jit(grad)
  together = jax.jit(jax.vmap(grad))(kernels)
  assert_close(together, jnp.stack([one(k) for k in kernels]), tol=1e-4)


def test_bfloat16_keeps_the_state_in_float32():
  args = arguments(jnp.bfloat16)[:4]
  state = lstm.zero_state(B, D)

  @jax.jit
  def grad(args):
    return jax.grad(loss(lstm.lstm), range(4), has_aux=True)(*args, state)

  gradients, (_, final) = grad(args)
  full_gradients, (_, full_final) = grad([a.astype(jnp.float32) for a in args])
  assert final.cell.dtype == jnp.float32
  assert all(g.dtype == jnp.bfloat16 for g in gradients)
  assert_close(final, full_final, tol=0.05)
  gradients = [g.astype(jnp.float32) for g in gradients]
  assert_close(gradients, list(full_gradients), tol=0.1)


def test_gradient_lowers_for_accelerators():
  grad = jax.grad(loss(lstm.lstm, mask=MASK), has_aux=True)
  traced = jax.jit(grad).trace(*arguments())
  for platform in ("cuda", "tpu"):
    assert traced.lower(lowering_platforms=(platform,))
