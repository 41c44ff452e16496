"""Sequences packed into one row: each behaves as if it were alone."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.ops import chunked, recurrent
from tests.agreement import Random, assert_agree, by_position, relative

SCAN = by_position(recurrent.memory_scan)
CHUNKED = by_position(chunked.memory_chunked)
FORMS = {"scan": SCAN} | {
  f"chunks of {size}": functools.partial(CHUNKED, chunk_size=size)
  for size in (16, 128)
}
LENGTHS = (5, 1, 40, 17, 8, 29)  # 100 tokens; parts of chunks, and several


def ids(lengths=LENGTHS, first=1):
  numbers = np.arange(first, first + len(lengths))
  return jnp.asarray(np.repeat(numbers, lengths))[None]


def tokens(seed=0, s=100, h=2, k=8, v=4):
  """q, k, v, p_r, p_w, p_e of one row."""
  rng = Random(seed)
  gates = [rng.uniform(1, s, h) for _ in range(3)]
  vectors = rng.unit(1, s, h, k), rng.unit(1, s, h, k), rng.normal(1, s, h, v)
  return *vectors, *gates


def one_by_one(x, mask=None, initial_memory=None, lengths=LENGTHS):
  """The same with one `memory_scan` per sequence; the last one's memory."""
  outputs, start = [], 0
  for length in lengths:
    span = slice(start, start + length)
    output, memory = SCAN(
      *(array[:, span] for array in x),
      initial_memory=initial_memory,
      mask=None if mask is None else mask[:, span],
    )
    outputs.append(output)
    start, initial_memory = start + length, None
  return jnp.concatenate(outputs, axis=1), memory


def scalar(weights, result):
  return sum(jnp.sum(w * r) for w, r in zip(weights, result, strict=True))


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_packed_sequences_do_not_see_each_other(form):
  rng, x = Random(1), tokens()
  mask, M0 = rng.mask(1, 100), rng.normal(1, 2, 4, 8)
  weights = rng.normal(1, 100, 2, 4), rng.normal(1, 2, 4, 8)

  def packed(M0, *x):
    result = form(*x, initial_memory=M0, mask=mask, segment_ids=ids())
    return scalar(weights, result), result

  def alone(M0, *x):
    result = one_by_one(x, mask, M0)
    return scalar(weights, result), result

  fast, slow = (
    jax.jit(jax.grad(f, range(7), has_aux=True))(M0, *x)
    for f in (packed, alone)
  )
  assert_agree(fast, slow, 1e-5)


def test_packed_writes_that_never_erase():
  q, k, v, p_r, p_w, _ = tokens()
  weights = Random(1).normal(1, 100, 2, 4), Random(2).normal(1, 2, 4, 8)

  def loss(form, *x):
    return scalar(weights, form(*x))

  def packed(q, k, v):
    return CHUNKED(q, k, v, p_r, p_w, 0, segment_ids=ids())

  def alone(q, k, v):
    return one_by_one((q, k, v, p_r, p_w, jnp.zeros_like(p_w)))

  fast, slow = (
    jax.jit(jax.value_and_grad(functools.partial(loss, form), range(3)))(
      q, k, v
    )
    for form in (packed, alone)
  )
  assert_agree(fast, slow, 1e-5)


@pytest.mark.parametrize("form", [SCAN, CHUNKED], ids=["scan", "chunked"])
def test_rows_are_packed_each_in_its_own_way_and_from_behind(form):
  x = [jnp.concatenate(pair) for pair in zip(tokens(0), tokens(1), strict=True)]
  other = (50, 20, 30)
  both = jnp.concatenate([ids(), ids(other, first=7)])
  outputs, memory = form(*x, segment_ids=both, reverse=True)
  for row, lengths in enumerate((LENGTHS, other)):
    turned = [jnp.flip(array[row : row + 1], axis=1) for array in x]
    expected, last = one_by_one(turned, lengths=lengths[::-1])
    assert relative(outputs[row], expected[0, ::-1]) < 1e-5
    assert relative(memory[row], last[0]) < 1e-5


def test_a_number_that_comes_again_is_a_new_sequence():
  x = tokens(s=24)
  again = ids((8, 8, 8)).at[:, 16:].set(1)
  outputs, _ = CHUNKED(*x, segment_ids=again)
  expected, _ = one_by_one(x, lengths=(8, 8, 8))
  assert relative(outputs, expected) < 1e-5


def test_one_sequence_is_the_plain_form_and_bfloat16_stays():
  x = [array.astype(jnp.bfloat16) for array in tokens()]
  outputs, memory = CHUNKED(*x, segment_ids=ids((100,)))
  expected = CHUNKED(*x)
  assert outputs.dtype == jnp.bfloat16
  assert_agree((outputs, memory), expected, 1e-6)


def test_packing_costs_no_more_than_one_long_sequence():
  """Operations and memory of the compiled gradient."""
  x = tokens(s=2048)

  def cost(**packed):
    form = functools.partial(CHUNKED, chunk_size=32, **packed)
    gradient = jax.grad(lambda *x: jnp.sum(form(*x)[0]), range(6))
    compiled = jax.jit(gradient).lower(*x).compile()
    memory = compiled.memory_analysis().temp_size_in_bytes
    return compiled.cost_analysis()["flops"], memory

  flops, memory = cost(segment_ids=ids((1024, 1000, 24)))
  alone_flops, alone_memory = cost()
  assert flops < 1.15 * alone_flops
  assert memory < 1.15 * alone_memory
