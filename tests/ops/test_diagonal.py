"""The diagonal recurrence against complex numbers in numpy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.ops import diagonal, hardware
from tests import lowered
from tests.agreement import assert_agree
from tests.reference import lru as reference

B, N = 2, 5
directions = pytest.mark.parametrize("reverse", [False, True])


def case(s):
  """lambda, inputs and a gradient of the states, complex; a mask."""
  rng = np.random.default_rng(s)
  u, gradient = rng.normal(size=(2, B, s, N, 2)) @ np.array([1, 1j])
  lam = rng.uniform(0.5, 0.999, N) * np.exp(1j * rng.uniform(0, 6, N))
  mask = rng.random((B, s)) < 0.7
  return lam, u, gradient, mask


def parts(array, dtype=np.float32):
  """Real and imaginary parts; time first if there is time."""
  array = np.swapaxes(array, 0, 1) if array.ndim == 3 else array
  return array.real.astype(dtype), array.imag.astype(dtype)


def whole(pair):
  """The complex array of two parts."""
  re, im = (np.float64(part) for part in pair)
  array = re + 1j * im
  return np.swapaxes(array, 0, 1) if array.ndim == 3 else array


def run(function, lam, u, gradient):
  """States, and the gradients of lambda and inputs, as complex arrays."""

  @jax.jit
  def all_of_it(lam, u, gradient):
    h, backward = jax.vjp(function, lam, u)
    return h, *backward(gradient)

  return [whole(pair) for pair in all_of_it(lam, u, gradient)]


@directions
@pytest.mark.parametrize("s", [1, 63, 100])
def test_states_and_gradients(s, reverse):
  lam, u, gradient, mask = case(s)
  expected = [
    reference.states(lam, u, mask, reverse),
    *reference.gradients(lam, u, mask, reverse, gradient),
  ]
  spoilt = np.where(mask[..., None], u, np.nan * (1 + 1j))
  function = functools.partial(
    diagonal.diagonal_recurrence, mask=jnp.asarray(mask), reverse=reverse
  )
  actual = run(function, parts(lam), parts(spoilt), parts(gradient))
  assert_agree(actual, expected, 2e-6)


@directions
@pytest.mark.parametrize("is_masked", [False, True])
def test_pairs_of_tokens_and_single_ones_agree(reverse, is_masked):
  lam, u, gradient, mask = case(37)
  mask = mask | (not is_masked)
  u = np.where(mask[..., None], u, 0)
  real = jnp.asarray(mask.T[..., None]) if is_masked else None
  expected = [
    reference.states(lam, u, mask, reverse),
    *reference.gradients(lam, u, mask, reverse, gradient),
  ]
  expected[2] = np.where(mask[..., None], expected[2], 0)
  for recur in (diagonal._by_pairs, diagonal._by_token):
    function = hardware.differentiable(diagonal._form(recur, reverse))
    h, d_lam, d_u = run(
      lambda lam, u, function=function: function(lam, u, real),
      *map(parts, (lam, u, gradient)),
    )
    d_u = np.where(mask[..., None], d_u, 0)
    assert_agree([h, d_lam, d_u], expected, 2e-6)


def test_bfloat16_is_rounded_only_at_the_end():
  lam, u, _, mask = case(100)
  compiled = jax.jit(diagonal.diagonal_recurrence)
  narrow = parts(u, jnp.bfloat16)
  states = compiled(parts(lam), narrow, mask=mask)
  assert all(h.dtype == jnp.bfloat16 for h in states)
  wide = compiled(parts(lam), jax.tree.map(np.float32, narrow), mask=mask)
  for h, e in zip(states, wide, strict=True):
    np.testing.assert_array_equal(h, e.astype(jnp.bfloat16))
  assert_agree(
    whole(states), reference.states(lam, whole(narrow), mask, False), 2e-2
  )


@pytest.mark.parametrize("shape", [(0, 3), (B, 0)])
def test_nothing_in_nothing_out(shape):
  nothing = np.zeros((*shape, N), complex)
  function = functools.partial(
    diagonal.diagonal_recurrence, mask=jnp.ones(shape, bool)
  )
  h, d_lam, d_u = run(function, *map(parts, (case(1)[0], nothing, nothing)))
  assert h.shape == d_u.shape == nothing.shape
  assert not d_lam.any()


def test_only_a_cpu_runs_token_by_token():
  x = jax.ShapeDtypeStruct((512, B, N), jnp.float32)
  lam = jax.ShapeDtypeStruct((N,), jnp.float32)

  def total(lam, u):
    return sum(map(jnp.sum, diagonal.diagonal_recurrence(lam, u)))

  traced = jax.jit(jax.grad(total, (0, 1))).trace((lam, lam), (x, x))
  for platform, longest in (("cpu", 512), ("cuda", 0), ("tpu", 0)):
    text = traced.lower(lowering_platforms=(platform,)).as_text()
    assert max(lowered.loops(text), default=0) == longest
