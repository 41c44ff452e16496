"""The LSAM recurrence against its plain scan."""

import functools

import jax
import jax.numpy as jnp
import pytest

from benchmarks import plain
from nam_jax.ops import lsam
from tests import linen_tools
from tests.agreement import Random, assert_agree, in_float64


def operands(b=3, s=11, h=2, v=4, d=5, seed=0):
  normal = Random(seed).normal
  o = lsam.lsam_width(v)
  state = lsam.LSAMState(normal(b, h, v, v), normal(b, h, v))
  return (
    normal(b, s, d),
    normal(d, h, o),
    normal(h, o),
    0.3 * normal(h, v, h, o),
    state,
  )


def total(scan, *args):
  """Distinct weights for each part: no gradient can hide in another."""
  outputs, state = scan(*args)
  loss = jnp.sum(jnp.sin(outputs)) + jnp.sum(jnp.cos(state.memory))
  return loss + jnp.sum(state.hidden**2), (outputs, state)


@pytest.mark.parametrize(
  ("reverse", "masked", "s"),
  [(False, False, 11), (False, True, 11), (True, True, 37), (True, False, 1)],
)
def test_equals_the_plain_scan(reverse, masked, s):
  args = operands(s=s)
  mask = Random(1).mask(3, s) if masked else None
  results = []
  for module in (lsam, plain):
    scan = functools.partial(module.lsam_scan, mask=mask, reverse=reverse)
    run = jax.value_and_grad(functools.partial(total, scan), range(5), True)
    results.append(jax.jit(run)(*args))
  assert_agree(*results, tolerance=1e-5)


def test_a_long_sequence_keeps_its_gradient():
  args = operands(s=600)
  grads = []
  for module in (lsam, plain):
    run = jax.grad(functools.partial(total, module.lsam_scan), 0, True)
    grads.append(jax.jit(run)(*args)[0])
  assert_agree(*grads, tolerance=1e-5)


def test_a_spike_costs_the_tokens_before_it_no_digits():
  x, *others = operands(s=39)

  def gradients(module):
    def loss(*args):
      return jnp.sum(jnp.sin(module.lsam_scan(*args)[0][:, :20]))

    return linen_tools.compiled(jax.grad(loss, range(5)))

  fast, slow = gradients(lsam), gradients(plain)
  for size in (1e4, 1e6):
    args = (x.at[:, 20].multiply(size), *others)
    actual = fast(*args)
    with jax.enable_x64(True):
      expected = slow(*in_float64(args))
    assert_agree(actual, expected, 1e-5)


def test_no_heads_give_no_gradient():
  gradient = jax.grad(functools.partial(total, lsam.lsam_scan), 0, True)
  assert not jax.jit(gradient)(*operands(h=0))[0].any()


def test_bfloat16_input_is_accumulated_in_float32():
  x, W_x, bias, *rest = operands()
  narrow = [a.astype(jnp.bfloat16) for a in (x, W_x, bias)]
  outputs, final = lsam.lsam_scan(*narrow, *rest)
  exact, _ = lsam.lsam_scan(*(a.astype(jnp.float32) for a in narrow), *rest)
  assert outputs.dtype == jnp.bfloat16
  assert final.memory.dtype == jnp.float32
  assert_agree(outputs.astype(jnp.float32), exact, 2**-8)
