"""Each addressing mechanism of the DNC: hand-computed values, invariants."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import plain
from nam_jax.ops import addressing
from tests import linen_tools
from tests.agreement import Random, assert_agree
from tests.reference import dnc as reference


def run(function, *args):
  return linen_tools.compiled(function)(*map(np.float32, args))


def close(actual, expected):
  np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


def weightings(rng, *shape):
  """Random weightings: non-negative, with sum 0.9."""
  w = rng.uniform(size=shape)
  return w / w.sum(-1, keepdims=True) * 0.9


def test_content_weighting_by_hand():
  memory = [[1, 0], [0, 2], [0, 0]]
  keys, strengths = [[4, 0], [0, -1]], np.log([3, 5])
  weights = run(addressing.content_weighting, memory, keys, strengths)
  # Cosines (1, 0, 0) and (0, -1, 0): odds (3, 1, 1) and (1, 1/5, 1).
  close(weights, [[0.6, 0.2, 0.2], [5 / 11, 1 / 11, 5 / 11]])


def test_content_weighting_has_finite_gradient_at_zero():
  def total(memory, keys):
    weights = addressing.content_weighting(memory, keys, jnp.ones((2, 1)))
    return jnp.sum(weights[..., 0])

  gradient = jax.grad(total, (0, 1))
  for g in run(gradient, np.zeros((2, 3, 4)), np.zeros((2, 1, 4))):
    assert np.isfinite(g).all()


def test_freeing_a_read_slot_empties_its_usage():
  read_weights = [[1, 0, 0], [0, 0.5, 0]]
  retained = run(addressing.retention, [1, 0.5], read_weights)
  close(retained, [0, 0.75, 1])
  used = run(addressing.update_usage, [0.5, 0.8, 0.2], [0.5, 0, 1], retained)
  close(used, [0, 0.6, 1])


def test_allocation_by_hand():
  # Free list 2, 0, 1: 0.8, then 0.5 * 0.2, then nothing.
  allocation = run(addressing.allocation_weighting, [0.5, 1, 0.2])
  close(allocation, [0.1, 0, 0.8])


def test_allocation_takes_the_first_of_equally_free_slots():
  allocation = run(addressing.allocation_weighting, [[0, 0, 0], [1, 1, 1]])
  close(allocation, [[1, 0, 0], [0, 0, 0]])


def test_allocation_equals_the_reference_with_batch_axes():
  usage = np.random.default_rng(0).uniform(size=(2, 3, 7))
  expected = np.apply_along_axis(reference.allocation, -1, usage)
  close(run(addressing.allocation_weighting, usage), expected)


@pytest.mark.parametrize("usage", [[0.5, 0.9, 0.2], [0.0, 0.0, 1.0]])
def test_allocation_gradient_is_that_of_a_fixed_free_list(usage):
  weights = np.float32([1, -2, 3])
  first, second, third = np.argsort(usage, kind="stable")
  a, b, c = usage[first], usage[second], usage[third]
  # The gradient of w1 (1 - a) + w2 (1 - b) a + w3 (1 - c) a b.
  w1, w2, w3 = weights[[first, second, third]]
  expected = np.zeros(3)
  expected[first] = -w1 + w2 * (1 - b) + w3 * (1 - c) * b
  expected[second] = -w2 * a + w3 * (1 - c) * a
  expected[third] = -w3 * a * b

  def total(u):
    return jnp.sum(weights * addressing.allocation_weighting(u))

  close(run(jax.grad(total), usage), expected)


def test_write_gates_choose_between_allocation_and_content():
  content, allocation = [[0, 1]] * 4, [[1, 0]] * 4
  gates = [1, 0, 0.25, 0.5], [1, 1, 1, 0]
  weights = run(addressing.write_weighting, content, allocation, *gates)
  close(weights, [[1, 0], [0, 1], [0.25, 0.75], [0, 0]])


def test_full_write_replaces_a_slot_and_no_write_keeps_the_memory():
  memory, vector = [[0, 1], [2, 3], [4, 5]], [7, -1]

  def written(weights, erase):
    return run(addressing.write, memory, weights, erase, vector)

  close(written([0, 1, 0], [1, 1]), [[0, 1], [7, -1], [4, 5]])
  close(written([0, 0, 0], [1, 1]), memory)
  close(written([0.5, 0, 0], [0, 1]), [[3.5, 0], [2, 3], [4, 5]])


def write_all(writes):
  """Link and precedence after a sequence of write weightings [..., n]."""
  n = np.shape(writes)[-1]
  precedence = np.zeros(np.shape(writes)[1:])
  link = np.zeros((*precedence.shape, n))
  for w in writes:
    link = run(addressing.update_link, link, precedence, w)
    precedence = run(addressing.update_precedence, precedence, w)
  return link, precedence


def test_links_follow_the_order_of_writing():
  link, precedence = write_all(np.eye(3)[[2, 0, 1]])
  close(precedence, [0, 1, 0])
  close(link, [[0, 0, 1], [1, 0, 0], [0, 0, 0]])
  close(run(addressing.forward_weighting, link, [[1, 0, 0]]), [[0, 1, 0]])
  close(run(addressing.backward_weighting, link, [[1, 0, 0]]), [[0, 0, 1]])


def test_links_stay_weightings_with_an_empty_diagonal():
  link, precedence = write_all(weightings(np.random.default_rng(0), 6, 2, 5))
  assert (link >= 0).all()
  assert (link.sum(-1) <= 1 + 1e-6).all()
  assert (link.sum(-2) <= 1 + 1e-6).all()
  assert (precedence.sum(-1) <= 1 + 1e-6).all()
  close(np.einsum("bnn->bn", link), np.zeros((2, 5)))


def test_read_modes_are_backward_content_forward():
  w = weightings(np.random.default_rng(0), 3, 2, 4)
  for mode in range(3):
    modes = np.tile(np.eye(3)[mode], (2, 1))
    close(run(addressing.read_weighting, modes, *w), w[mode])


def test_reading_one_slot_returns_it():
  memory, weights = [[0, 1], [2, 3], [4, 5]], [[0, 0, 1], [0.5, 0.5, 0]]
  close(run(addressing.read, memory, weights), [[4, 5], [1, 2]])


RNG = Random()
USAGE = RNG.uniform(2, 3, 5)
OPERANDS = {
  "content_weighting": (
    RNG.normal(2, 3, 5, 4),
    RNG.normal(2, 3, 6, 4),
    RNG.uniform(2, 3, 6),
  ),
  "allocation_weighting": (USAGE,),
  "update_and_follow": (
    RNG.normal(2, 3, 5, 5),
    RNG.normal(2, 3, 5),
    RNG.uniform(2, 3, 5),
    RNG.uniform(2, 3, 4, 5),
  ),
  "read": (RNG.normal(2, 3, 5, 4), RNG.uniform(2, 3, 6, 5)),
}
CASES = list(OPERANDS.items())
# Slots that are empty, full, equally used, and hardly used.
for filled in (0.0, 1.0, 0.25, 1e-30):
  CASES += [
    (
      "allocation_weighting",
      (np.where(np.arange(5) < count, filled, USAGE).astype(np.float32),),
    )
    for count in (1, 2, 5)
  ]
# Slots that hold nothing, or too little to have a direction.
memory, *others = OPERANDS["content_weighting"]
CASES += [
  (
    "content_weighting",
    (np.asarray(memory) * np.float32([[factor]] * 2 + [[1]] * 3), *others),
  )
  for factor in (0, 1e-7)
]


@functools.cache
def values_and_gradients(function, places):
  """Compiled once for all cases of a function."""

  def total(*operands):
    # Every element has its own slope, so that they do not cancel out.
    return sum(
      jnp.sum(
        jnp.sin(0.7 * jnp.arange(part.size, dtype=part.dtype) + part.ravel())
      )
      for part in jax.tree.leaves(function(*operands))
    )

  gradient = jax.grad(total, tuple(range(places)))
  return linen_tools.compiled(lambda *x: (function(*x), gradient(*x)))


@pytest.mark.parametrize(("name", "operands"), CASES)
def test_values_and_gradients_are_those_of_the_plain_equations(name, operands):
  fast, slow = (
    values_and_gradients(getattr(module, name), len(operands))(*operands)
    for module in (addressing, plain)
  )
  assert_agree(fast[0], slow[0], 1e-6)
  assert_agree(fast[1], slow[1], 1e-5)
