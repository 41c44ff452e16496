"""memory_scan and memory_chunked against the numpy twin and a plain scan."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import plain
from nam_jax.ops import chunked, cut, normalize, recurrent
from tests import linen_tools
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
  rng = np.random.default_rng(seed)
  centre = (1 - spread) * rng.normal(size=(1, b, 1, h, k))
  vectors = centre + spread * rng.normal(size=(2, b, s, h, k))
  vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
  values, gates = rng.normal(size=(b, s, h, v)), rng.random((3, b, s, h))
  return Tokens(*(jnp.float32(a) for a in (*vectors, values, *gates)))


def weighted(weights, result):
  """A scalar that depends on every output and on the final memory."""
  return jnp.sum(weights[0] * result[0]) + jnp.sum(weights[1] * result[1])


@pytest.fixture(params=list(FORMS))
def form(request):
  """One sequence form; `reverse` and a plain p_e stay static under jit."""
  return FORMS[request.param]


def gradient_and_result(form, **options):
  """Gradients of a scalar that depends on all outputs and the final memory."""

  def total(x, weights, M0, mask):
    result = form(*x, initial_memory=M0, mask=mask, **options)
    return weighted(weights, result), result

  return linen_tools.compiled(jax.grad(total, (0, 2), has_aux=True))


def plain_form(*x, initial_memory, mask, reverse=False):
  turn = functools.partial(jnp.flip, axis=1) if reverse else jnp.asarray
  q, k, v, *gates = x
  gates = [turn(jnp.where(mask[..., None], p, 0)) for p in gates]
  outputs, M = plain.memory_scan(
    turn(q), turn(k), turn(v), *gates, initial_memory
  )
  return turn(outputs), M


# Compiled once for a test's cases.
THOUSAND = {
  name: gradient_and_result(form)
  for name, form in {**FORMS, "plain": plain_form}.items()
}


@pytest.mark.parametrize("spread", [1.0, 0.05], ids=["random", "correlated"])
def test_thousand_tokens_equal_the_twins_to_1e_5(spread):
  x = tokens(0, b=1, s=1000, h=2, k=16, v=8, spread=spread)
  rng, M0 = Random(2), np.zeros((1, 2, 8, 16), np.float32)
  weights = rng.normal(1, 1000, 2, 8), rng.normal(1, 2, 8, 16)
  operands, mask = (x, weights, M0), np.ones((1, 1000), bool)
  with jax.enable_x64(True):
    wide = jax.tree.map(np.float64, operands)
    truth, _ = THOUSAND["plain"](*wide, mask)
  expected = reference.sequence(*x)
  for form in FORMS:
    gradient, result = THOUSAND[form](*operands, mask)
    assert_agree(result, expected, 1e-5)
    assert_agree(gradient, truth, 1e-5)


@pytest.mark.parametrize(
  ("s", "reverse"),
  [(1, False), (63, True), (64, False), (100, False), (100, True)],
)
def test_equals_the_twins_with_mask_and_initial_memory(s, reverse):
  x, rng = tokens(s, b=2, s=s, h=2, k=5, v=4), Random(3)
  M0, mask = rng.normal(2, 2, 4, 5), rng.mask(2, s)
  weights = rng.normal(2, s, 2, 4), rng.normal(2, 2, 4, 5)
  operands = (x, weights, M0, mask)
  truth, _ = gradient_and_result(plain_form, reverse=reverse)(*operands)
  expected = reference.sequence(*x, M0, mask, reverse)
  for form in FORMS.values():
    gradient, result = gradient_and_result(form, reverse=reverse)(*operands)
    for actual, other in zip(result, expected, strict=True):
      np.testing.assert_allclose(actual, other, atol=2e-5)
    for (path, actual), other in zip(
      jax.tree.leaves_with_path(gradient), jax.tree.leaves(truth), strict=True
    ):
      np.testing.assert_allclose(
        actual, other, atol=3e-5, rtol=1e-4, err_msg=str(path)
      )


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


def test_bfloat16_stays_within_its_rounding(form):
  x = tokens(10, b=1, s=300, h=2, k=16, v=8)
  narrow = Tokens(*(a.astype(jnp.bfloat16) for a in x))
  exact = Tokens(*(a.astype(jnp.float32) for a in narrow))

  @linen_tools.compiled
  def run(x):
    def total(x):
      outputs, M = form(*x)
      return jnp.sum(outputs.astype(jnp.float32)), (outputs, M)

    return jax.grad(total, has_aux=True)(x)

  grads, (outputs, M) = run(narrow)
  truth, (expected, M_expected) = run(exact)
  assert outputs.dtype == jnp.bfloat16
  assert M.dtype == jnp.float32
  # bfloat16 rounds to 2^-9; only inputs and outputs are rounded, not the sums.
  assert relative(outputs.astype(np.float32), expected) < 2**-8
  assert relative(M, M_expected) < 2**-8
  for name, g, e in zip(Tokens._fields, grads, truth, strict=True):
    assert g.dtype == jnp.bfloat16
    assert relative(g.astype(np.float32), e) < 2**-6, name


def test_vmap_jit_grad_and_checkpoint_compose(form):
  x = tokens(11, b=2, s=33, h=2, k=4, v=3)
  stacked = Tokens(*(np.stack([a, 0.5 * np.asarray(a)]) for a in x))

  def total(x):
    return jnp.sum(form(*x)[0] ** 2)

  gradient = linen_tools.compiled(jax.grad(total))
  composed = linen_tools.compiled(jax.vmap(jax.grad(jax.checkpoint(total))))(
    stacked
  )
  for i in range(2):
    single = gradient(Tokens(*(a[i] for a in stacked)))
    for left, right in zip(composed, single, strict=True):
      np.testing.assert_allclose(left[i], right, rtol=1e-4, atol=1e-5)


def test_zero_keys_values_and_queries_have_finite_gradients(form):
  zeros = [jnp.zeros((1, 5, 1, 3))] * 3

  def total(q, k, v):
    return jnp.sum(form(normalize.unit(q), normalize.unit(k), v)[0])

  for grad in jax.jit(jax.grad(total, (0, 1, 2)))(*zeros):
    assert jnp.isfinite(grad).all()


@pytest.mark.parametrize("size", [1, 2, 64, 128])
def test_every_chunk_size_gives_the_same_result(size):
  x = tokens(12, b=1, s=100, h=1, k=6, v=3)
  outputs, M = CHUNKED(*x, chunk_size=size)
  expected, M_expected = SCAN(*x)
  np.testing.assert_allclose(outputs, expected, atol=1e-5)
  np.testing.assert_allclose(M, M_expected, atol=1e-5)


@pytest.mark.parametrize("decay", [None, 1, 6])
def test_few_chunks_at_once_give_the_same_result_as_all(decay, monkeypatch):
  """The layouts for a CPU and for accelerators."""
  x, rng = tokens(13, b=2, s=300, h=2, k=6, v=3), Random(4)
  log_decay = None
  if decay:
    log_decay = -rng.uniform(2, 300, 2, decay)
    log_decay = log_decay[..., 0] if decay == 1 else log_decay

  def run(x, log_decay):
    def total(x, log_decay):
      outputs, M = CHUNKED(*x, log_decay=log_decay, chunk_size=16)
      return jnp.sum(jnp.sin(outputs)) + jnp.sum(M), (outputs, M)

    gradient = jax.value_and_grad(total, (0, 1), has_aux=True)
    return linen_tools.compiled(gradient)(x, log_decay)

  assert cut.make_cut(16, 300, 2 * 2 * 6).segments == 1
  all_at_once = run(x, log_decay)
  monkeypatch.setattr(cut, "_CPU_NUMBERS", 3 * 16 * 2 * 2 * 6)
  assert cut.make_cut(16, 300, 2 * 2 * 6).segments == 7
  jax.clear_caches()
  assert_agree(run(x, log_decay), all_at_once, 1e-5)


@pytest.mark.parametrize("s", [0, 1, 2, 5, 32, 33, 130, 1000])
def test_filling_up_costs_less_than_a_chunk_a_segment(s):
  """One streamed token is not computed as several."""
  size = chunked._check_size(None, s)
  parts = cut.make_cut(size, s, 1024)
  filled = parts.length - max(s, 1)
  assert filled < size * parts.segments
  assert parts.length < 2 * max(s, 1)


def test_an_empty_sequence_leaves_the_memory_as_it_is(form):
  x = tokens(14, b=1, s=0, h=1, k=3, v=2)
  M0 = jnp.ones((1, 1, 2, 3))
  outputs, M = form(*x, initial_memory=M0)
  assert outputs.shape == (1, 0, 1, 2)
  np.testing.assert_array_equal(M, M0)
