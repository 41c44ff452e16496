"""memory_scan and memory_chunked against the numpy twin and a plain scan."""

import functools
from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import plain
from nam_jax.ops import chunked, hardware, normalize, recurrent
from tests.agreement import Random, assert_agree, by_position, relative
from tests.reference import memory as reference

SCAN = by_position(recurrent.memory_scan)
CHUNKED = by_position(chunked.memory_chunked)
FORMS = {"scan": SCAN, "chunked": functools.partial(CHUNKED, chunk_size=32)}


class Tokens(NamedTuple):
  q: jax.Array
  k: jax.Array
  v: jax.Array
  p_r: jax.Array
  p_w: jax.Array
  p_e: jax.Array


def tokens(seed, b, s, h, k, v, spread=1.0) -> Tokens:
  """Random tokens; spread near 0 makes all keys of a head nearly equal."""
  rng = Random(seed)
  normal = rng.normal
  centre = (1 - spread) * normal(b, 1, h, k)
  keys = normalize.unit(centre + spread * normal(b, s, h, k))
  queries = normalize.unit(centre + spread * normal(b, s, h, k))
  gates = [rng.uniform(b, s, h) for _ in range(3)]
  return Tokens(queries, keys, normal(b, s, h, v), *gates)


def weighted(weights, result):
  """A scalar that depends on every output and on the final memory."""
  return jnp.sum(weights[0] * result[0]) + jnp.sum(weights[1] * result[1])


@pytest.fixture(params=list(FORMS))
def form(request):
  """One sequence form; `reverse` and a plain p_e stay static under jit."""
  return FORMS[request.param]


@pytest.mark.parametrize("spread", [1.0, 0.05], ids=["random", "correlated"])
def test_thousand_tokens_equal_the_twins_to_1e_5(form, spread):
  x = tokens(0, b=1, s=1000, h=2, k=16, v=8, spread=spread)
  rng = Random(2)
  weights = rng.normal(1, 1000, 2, 8), rng.normal(1, 2, 8, 16)

  def fast(*x):
    result = form(*x)
    return weighted(weights, result), result

  def slow(weights, M0, *x):
    return weighted(weights, plain.memory_scan(*x, M0))

  grads, result = jax.jit(jax.grad(fast, range(6), has_aux=True))(*x)
  for actual, expected in zip(result, reference.sequence(*x), strict=True):
    assert relative(actual, expected) < 1e-5
  with jax.enable_x64(True):
    wide = [np.asarray(a, np.float64) for a in (*weights, *x)]
    M0 = np.zeros((1, 2, 8, 16))
    truth = jax.jit(jax.grad(slow, range(2, 8)))(wide[:2], M0, *wide[2:])
  for name, actual, expected in zip(Tokens._fields, grads, truth, strict=True):
    assert relative(actual, expected) < 1e-5, name


@pytest.mark.parametrize("s", [1, 63, 64, 100])
@pytest.mark.parametrize("reverse", [False, True])
def test_equals_the_twins_with_mask_and_initial_memory(form, s, reverse):
  x = tokens(s, b=2, s=s, h=2, k=5, v=4)
  rng = Random(3)
  M0, mask = rng.normal(2, 2, 4, 5), rng.mask(2, s)
  weights = rng.normal(2, s, 2, 4), rng.normal(2, 2, 4, 5)

  def fast(M0, *x):
    result = form(*x, initial_memory=M0, mask=mask, reverse=reverse)
    return weighted(weights, result), result

  def slow(M0, q, k, v, *gates):
    turn = functools.partial(jnp.flip, axis=1) if reverse else jnp.asarray
    real = jnp.where(mask[..., None], 1.0, 0.0)
    gates = [turn(p * real) for p in gates]
    outputs, M = plain.memory_scan(turn(q), turn(k), turn(v), *gates, M0)
    return weighted(weights, (turn(outputs), M))

  grad, result = jax.jit(jax.grad(fast, range(7), has_aux=True))(M0, *x)
  expected = reference.sequence(*x, M0, mask, reverse)
  for actual, truth in zip(result, expected, strict=True):
    np.testing.assert_allclose(actual, truth, atol=2e-5)
  truth = jax.jit(jax.grad(slow, range(7)))(M0, *x)
  for name, a, e in zip(("M0", *Tokens._fields), grad, truth, strict=True):
    np.testing.assert_allclose(a, e, atol=3e-5, rtol=1e-4, err_msg=name)


def test_splitting_a_sequence_and_passing_the_memory_on_changes_nothing(form):
  x = tokens(4, b=1, s=90, h=2, k=4, v=4)
  whole, M_whole = form(*x)
  first, M = form(*(a[:, :37] for a in x))
  second, M = form(*(a[:, 37:] for a in x), initial_memory=M)
  np.testing.assert_allclose(
    jnp.concatenate([first, second], 1), whole, atol=1e-5
  )
  np.testing.assert_allclose(M, M_whole, atol=1e-5)


def test_token_by_token_equals_the_whole_sequence(form):
  x = tokens(5, b=2, s=20, h=2, k=4, v=3)
  whole, M_whole = form(*x)
  M, outputs = jnp.zeros((2, 2, 3, 4)), []
  for t in range(20):
    output, M = form(*(a[:, t : t + 1] for a in x), initial_memory=M)
    outputs.append(output)
  np.testing.assert_allclose(jnp.concatenate(outputs, 1), whole, atol=1e-5)
  np.testing.assert_allclose(M, M_whole, atol=1e-5)


def test_padding_never_changes_a_real_output(form):
  x = tokens(6, b=2, s=50, h=2, k=4, v=3)
  outputs, M = form(*x)
  padded = Tokens(
    *(
      jnp.pad(
        a, [(0, 0), (7, 33)] + [(0, 0)] * (a.ndim - 2), constant_values=1.0
      )
      for a in x
    )
  )
  mask = jnp.pad(jnp.ones((2, 50), bool), ((0, 0), (7, 33)))
  longer, M_longer = form(*padded, mask=mask)
  np.testing.assert_allclose(longer[:, 7:57], outputs, atol=1e-5)
  np.testing.assert_allclose(M_longer, M, atol=1e-5)
  assert not longer[:, :7].any()
  assert not longer[:, 57:].any()


def test_scalar_probabilities_equal_constant_arrays(form):
  x = tokens(7, b=1, s=40, h=2, k=4, v=3)
  gates = [jnp.full((1, 40, 2), p) for p in (0.5, 0.25, 0.75)]
  expected = form(*x[:3], *gates)
  assert_agree(form(*x[:3], 0.5, 0.25, 0.75), expected, 1e-6)
  scalars = [gate[0, 0, 0] for gate in gates]
  assert_agree(form(*x[:3], *scalars), expected, 1e-6)


def test_never_erasing_equals_an_erase_probability_of_zero(form):
  x = tokens(8, b=1, s=70, h=2, k=4, v=3)
  zero = jnp.zeros((1, 70, 2))

  def grads(p_e):
    def total(*x):
      outputs, M = form(*x, p_e)
      return jnp.sum(outputs**2) + jnp.sum(M)

    return jax.jit(jax.grad(total, range(5)))(*x[:5])

  for left, right in zip(grads(0), grads(zero), strict=True):
    np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)


def test_early_gradients_survive_a_loud_ending():
  """Undoing large writes must not leave their rounding in a small memory."""
  s = 400
  x = tokens(9, b=1, s=s, h=1, k=8, v=4)
  v = jnp.where((jnp.arange(s) < 200)[None, :, None, None], x.v, 1e6 * x.v)
  early = (jnp.arange(s) < 50)[None, :, None, None]

  def gradient(form):
    def total(q):
      return jnp.sum(jnp.where(early, form(q, x.k, v, *x[3:])[0], 0))

    return jax.jit(jax.grad(total))(x.q)

  def twin(*args):
    return plain.memory_scan(*args, jnp.zeros((1, 1, 4, 8)))

  assert_agree(gradient(SCAN), gradient(twin), 1e-5)


@pytest.mark.parametrize("s", [64, 1000])
def test_bfloat16_stays_within_its_rounding(form, s):
  x = tokens(10, b=1, s=s, h=2, k=16, v=8)
  narrow = Tokens(*(a.astype(jnp.bfloat16) for a in x))
  exact = Tokens(*(a.astype(jnp.float32) for a in narrow))
  outputs, M = form(*narrow)
  expected, M_expected = form(*exact)
  assert outputs.dtype == jnp.bfloat16
  assert M.dtype == jnp.float32
  # bfloat16 rounds to 2^-9; only inputs and outputs are rounded, not the sums.
  assert relative(outputs.astype(jnp.float32), expected) < 2**-8
  assert relative(M, M_expected) < 2**-8

  def total(x):
    return jnp.sum(form(*x)[0].astype(jnp.float32))

  grads, truth = (jax.jit(jax.grad(total))(a) for a in (narrow, exact))
  for name, g, e in zip(Tokens._fields, grads, truth, strict=True):
    assert g.dtype == jnp.bfloat16
    assert relative(g.astype(jnp.float32), e) < 2**-6, name


def test_vmap_jit_grad_and_checkpoint_compose(form):
  x = tokens(11, b=2, s=33, h=2, k=4, v=3)
  stacked = Tokens(*(jnp.stack([a, 0.5 * a]) for a in x))

  def total(x):
    return jnp.sum(form(*x)[0] ** 2)

  composed = jax.jit(jax.vmap(jax.grad(jax.checkpoint(total))))(stacked)
  for i in range(2):
    single = jax.grad(total)(Tokens(*(a[i] for a in stacked)))
    for left, right in zip(composed, single, strict=True):
      np.testing.assert_allclose(left[i], right, rtol=1e-4, atol=1e-5)


def test_zero_keys_values_and_queries_have_finite_gradients(form):
  zeros = [jnp.zeros((1, 5, 1, 3))] * 3

  def total(q, k, v):
    return jnp.sum(form(normalize.unit(q), normalize.unit(k), v)[0])

  for grad in jax.jit(jax.grad(total, (0, 1, 2)))(*zeros):
    assert jnp.isfinite(grad).all()


@pytest.mark.parametrize("size", [1, 2, 16, 64, 128])
def test_every_chunk_size_gives_the_same_result(size):
  x = tokens(12, b=1, s=100, h=1, k=6, v=3)
  outputs, M = CHUNKED(*x, chunk_size=size)
  expected, M_expected = SCAN(*x)
  np.testing.assert_allclose(outputs, expected, atol=1e-5)
  np.testing.assert_allclose(M, M_expected, atol=1e-5)


def test_the_layout_for_accelerators_gives_the_same_result():
  x = tokens(13, b=2, s=300, h=2, k=6, v=3)

  def total(*x):
    outputs, M = CHUNKED(*x)
    return jnp.sum(jnp.sin(outputs)) + jnp.sum(M), (outputs, M)

  run = jax.value_and_grad(total, range(6), has_aux=True)
  here = run(*x)
  with mock.patch.object(hardware, "on_cpu", return_value=False):
    there = run(*x)
  assert_agree(there, here, 1e-5)


@pytest.mark.parametrize("s", [0, 1, 2, 5, 32, 33, 130, 1000])
def test_filling_up_costs_less_than_a_chunk_a_segment(s):
  """One streamed token is not computed as several."""
  cut = chunked._make_cut(s, None)
  segments = -(-max(s, 1) // cut.segment)
  filled = segments * cut.segment - max(s, 1)
  assert filled < cut.size * segments
  assert cut.segment <= max(1, s) or cut.segment < 2 * s


def test_an_empty_sequence_leaves_the_memory_as_it_is(form):
  x = tokens(14, b=1, s=0, h=1, k=3, v=2)
  M0 = jnp.ones((1, 1, 2, 3))
  outputs, M = form(*x, initial_memory=M0)
  assert outputs.shape == (1, 0, 1, 2)
  np.testing.assert_array_equal(M, M0)
