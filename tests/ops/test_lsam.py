"""The LSAM recurrence against its plain scan."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.ops import lsam
from tests.reference import plain


def operands(b=3, s=11, h=2, v=4, seed=0):
  rng = np.random.default_rng(seed)

  def normal(*shape):
    return jnp.asarray(rng.standard_normal(shape), jnp.float32)

  o = lsam.lsam_width(v)
  state = lsam.LSAMState(normal(b, h, v, v), normal(b, h, v))
  return normal(b, s, h, o), 0.3 * normal(h, v, h, o), state


def total(scan, *args):
  outputs, state = scan(*args)
  # Distinct weights for each part, so that no gradient can hide in another.
  return (
    jnp.sum(jnp.sin(outputs))
    + jnp.sum(jnp.cos(state.memory))
    + jnp.sum(state.hidden**2)
  )


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("s", [1, 11])
def test_equals_the_plain_scan(reverse, masked, s):
  args = operands(s=s)
  mask = None
  if masked:
    mask = jnp.asarray(np.random.default_rng(1).random((3, s)) < 0.6)
  fast = functools.partial(lsam.lsam_scan, mask=mask, reverse=reverse)
  slow = functools.partial(plain.lsam_scan, mask=mask, reverse=reverse)
  jax.tree.map(
    functools.partial(np.testing.assert_allclose, atol=1e-5),
    fast(*args),
    slow(*args),
  )
  grads = [
    jax.jit(jax.grad(functools.partial(total, f), (0, 1, 2)))(*args)
    for f in (fast, slow)
  ]
  jax.tree.map(
    functools.partial(np.testing.assert_allclose, atol=2e-4, rtol=1e-4), *grads
  )


def test_a_long_sequence_keeps_its_gradient():
  args = operands(s=600)
  fast, slow = (
    jax.jit(jax.grad(functools.partial(total, f), 0))(*args)
    for f in (lsam.lsam_scan, plain.lsam_scan)
  )
  assert jnp.abs(fast - slow).max() < 1e-5 * jnp.abs(slow).max()


def test_bfloat16_input_is_accumulated_in_float32():
  z, W_h, state = operands()
  outputs, final = lsam.lsam_scan(z.astype(jnp.bfloat16), W_h, state)
  exact, _ = lsam.lsam_scan(
    z.astype(jnp.bfloat16).astype(jnp.float32), W_h, state
  )
  assert outputs.dtype == jnp.bfloat16
  assert final.memory.dtype == jnp.float32
  error = jnp.abs(outputs.astype(jnp.float32) - exact).max()
  assert error < 2**-8 * jnp.abs(exact).max()
