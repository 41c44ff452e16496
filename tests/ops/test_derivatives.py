"""Forward mode against that of plain twins."""

import functools

import jax
import numpy as np
import pytest

import nam_jax
from benchmarks import plain
from nam_jax.ops import addressing, lsam, lstm, tape
from tests import linen_tools
from tests.agreement import Random, assert_agree
from tests.ops import test_addressing, test_lsam, test_lstm, test_tape
from tests.reference import lstm as plain_lstm


def memory_operands():
  rng = Random()
  gates = [rng.uniform(2, 9, 2) for _ in range(3)]
  keys = [rng.unit(2, 9, 2, 5) for _ in range(2)]
  return (*keys, rng.normal(2, 9, 2, 4), *gates, rng.normal(2, 2, 4, 5))


def memory(form, q, k, v, p_r, p_w, p_e, initial):
  gates = {"p_r": p_r, "p_w": p_w, "p_e": p_e}
  return form(q, k, v, **gates, initial_memory=initial)


MEMORY = (plain.memory_scan, memory_operands())
TAPE = functools.partial(plain.tape_scan, transitions=tape.TRANSITIONS)
LSTM = functools.partial(plain_lstm.lstm, mask=None, reverse=False)
CASES = {
  "scan": (functools.partial(memory, nam_jax.memory_scan), *MEMORY),
  "chunked": (functools.partial(memory, nam_jax.memory_chunked), *MEMORY),
  "lsam": (lsam.lsam_scan, plain.lsam_scan, test_lsam.operands()),
  "tape": (tape.tape_scan, TAPE, test_tape.operands(tape.TRANSITIONS)),
  "lstm": (lstm.lstm, LSTM, test_lstm.arguments()),
} | {
  name: (getattr(addressing, name), getattr(plain, name), operands)
  for name, operands in test_addressing.OPERANDS.items()
}


@pytest.mark.parametrize(("fast", "slow", "primals"), CASES.values(), ids=CASES)
def test_pushes_tangents_as_plain_twins_do(fast, slow, primals):
  rng = Random(1)
  tangents = jax.tree.map(lambda a: rng.normal(*a.shape), primals)

  @linen_tools.compiled
  def actual(primals, tangents):
    outputs, push = nam_jax.linearize(fast, *primals)
    return outputs, push(*tangents)

  expected = linen_tools.compiled(functools.partial(jax.jvp, slow))
  assert_agree(actual(primals, tangents), expected(primals, tangents), 1e-5)


def test_jacobian_is_that_of_reverse_mode():
  q, k, v, *_ = memory_operands()

  def outputs(v):
    return nam_jax.memory(q, k, v)[0][:, -1]

  @linen_tools.compiled
  def both(v):
    _, push = nam_jax.linearize(outputs, v)
    basis = np.eye(v.size, dtype=np.float32).reshape(v.size, *v.shape)
    return jax.vmap(push)(basis), jax.jacrev(outputs)(v)

  forward, reverse = both(v)
  assert_agree(np.moveaxis(forward, 0, -1).ravel(), reverse.ravel(), 1e-5)
