"""RD and WR: hand-computed values, the paper's theorems on random inputs."""

import hypothesis
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.ops import memory, normalize
from tests.agreement import Random, assert_agree
from tests.reference import memory as reference

widths = st.integers(1, 9)
seeds = st.integers(0, 2**31)
probabilities = st.floats(0, 1, width=32)


def orthonormal(seed, count, width):
  matrix = np.random.default_rng(seed).standard_normal((width, width))
  return np.linalg.qr(matrix)[0][:count]


@pytest.fixture(params=[False, True], ids=["plain", "jitted"])
def run(request):
  return jax.jit if request.param else (lambda f: f)


def test_read_by_hand(run):
  M = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
  q = jnp.array([0.6, 0.8])
  np.testing.assert_allclose(run(memory.read)(M, q), [2.2, 5.0, 7.8], rtol=1e-6)
  np.testing.assert_allclose(
    run(memory.read)(M, q, 0.5), [1.1, 2.5, 3.9], rtol=1e-6
  )


def test_write_by_hand(run):
  # M k = [2.2, 5.0]; u = 0.5 v - 0.25 M k = [-0.05, 0.75].
  M = jnp.array([[1.0, 2.0], [3.0, 4.0]])
  k, v = jnp.array([0.6, 0.8]), jnp.array([1.0, 4.0])
  expected = [[1 - 0.03, 2 - 0.04], [3 + 0.45, 4 + 0.6]]
  np.testing.assert_allclose(
    run(memory.write)(M, k, v, 0.5, 0.25), expected, rtol=1e-6
  )


@hypothesis.given(seeds, widths, widths, probabilities, probabilities)
@hypothesis.settings(deadline=None, max_examples=30)
def test_write_and_read_equal_the_numpy_twin(seed, v, k, p_w, p_e):
  rng = Random(seed)
  M, key, value = rng.normal(v, k), rng.unit(k), rng.normal(v)
  written = memory.write(M, key, value, p_w, p_e)
  expected = reference.write(*map(np.asarray, (M, key, value)), p_w, p_e)
  np.testing.assert_allclose(written, expected, atol=1e-5)
  np.testing.assert_allclose(
    memory.read(written, key, p_w),
    reference.read(expected, np.asarray(key), p_w),
    atol=1e-5,
  )


@hypothesis.given(seeds, widths, widths)
@hypothesis.settings(deadline=None, max_examples=30)
def test_theorem_1_reading_the_written_key_returns_the_value(seed, v, k):
  rng = Random(seed)
  M, key, value = rng.normal(v, k), rng.unit(k), rng.normal(v)
  np.testing.assert_allclose(
    memory.read(memory.write(M, key, value), key), value, atol=1e-5
  )


@hypothesis.given(seeds, widths, widths, st.data())
@hypothesis.settings(deadline=None, max_examples=30)
def test_lemma_and_theorem_2_orthonormal_keys_keep_all_values(seed, v, k, data):
  count = data.draw(st.integers(1, k))
  keys = jnp.asarray(orthonormal(seed, count, k), jnp.float32)
  values = Random(seed).normal(count, v)
  M = jnp.zeros((v, k))
  for key, value in zip(keys, values, strict=True):
    M = memory.write(M, key, value)
  np.testing.assert_allclose(M, values.T @ keys, atol=1e-5)
  for key, value in zip(keys, values, strict=True):
    np.testing.assert_allclose(memory.read(M, key), value, atol=1e-5)


@hypothesis.given(seeds, widths, widths)
@hypothesis.settings(deadline=None, max_examples=30)
def test_corollary_one_write_learns_one_example(seed, v, k):
  rng = Random(seed)
  W, x, y = rng.normal(v, k), rng.normal(k), rng.normal(v)
  length = jnp.linalg.norm(x)
  hypothesis.assume(length > 0.1)
  W = memory.write(W, x / length, y / length)
  np.testing.assert_allclose(W @ x, y, atol=1e-4)


@hypothesis.given(seeds, st.integers(1, 6), widths)
@hypothesis.settings(deadline=None, max_examples=30)
def test_theorem_3_without_erasing_it_is_a_cosine_classifier(seed, n, d):
  rng = Random(seed)
  features, x = rng.normal(n, d), rng.normal(d)
  W = jnp.zeros((n, d))
  for i, feature in enumerate(features):
    one_hot = jax.nn.one_hot(i, n)
    W = memory.write(W, normalize.unit(feature), one_hot, 1, 0)
  norms = np.linalg.norm(features, axis=1) * np.linalg.norm(x)
  cosine = np.asarray(features @ x) / norms
  np.testing.assert_allclose(
    memory.read(W, normalize.unit(x)), cosine, atol=1e-4
  )


def test_leading_axes_are_independent_memories():
  rng = Random()
  M, k, v = rng.normal(2, 3, 4, 5), rng.unit(2, 3, 5), rng.normal(2, 3, 4)
  p = rng.uniform(2, 3)
  batched = memory.write(M, k, v, p, 1 - p)
  single = jax.vmap(jax.vmap(memory.write))(M, k, v, p, 1 - p)
  assert_agree(batched, single, 1e-6)


def test_one_probability_for_all_may_be_an_array():
  rng = Random()
  M, k, v = rng.normal(2, 4, 5), rng.unit(2, 5), rng.normal(2, 4)
  half, third = jnp.float32(1 / 2), jnp.float32(1 / 3)
  written = memory.write(M, k, v, half, third)
  assert_agree(written, memory.write(M, k, v, 1 / 2, 1 / 3), 1e-6)
  assert_agree(memory.read(M, k, half), memory.read(M, k, 1 / 2), 1e-6)


def test_nothing_changes_with_probabilities_of_zero():
  rng = Random()
  M = rng.normal(4, 5)
  written = memory.write(M, rng.unit(5), rng.normal(4), 0, 0)
  np.testing.assert_array_equal(written, M)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_unit_vectors_have_length_one_and_a_finite_gradient_at_zero(dtype):
  x = (jnp.array([[3.0, 4.0], [1e-3, 0], [0, -1e8]])).astype(dtype)
  u = normalize.unit(x)
  assert u.dtype == dtype
  lengths = jnp.linalg.norm(u.astype(jnp.float32), axis=-1)
  np.testing.assert_allclose(lengths, 1, atol=2**-8)
  zero = jnp.zeros(3, dtype)
  assert not normalize.unit(zero).any()
  grad = jax.grad(lambda x: normalize.unit(x).astype(jnp.float32).sum())(zero)
  assert jnp.isfinite(grad).all()


@hypothesis.given(seeds, widths, st.floats(0.01, 100))
@hypothesis.settings(deadline=None, max_examples=30)
def test_unit_does_not_depend_on_scale(seed, d, factor):
  x = Random(seed).normal(d) + 0.1
  hypothesis.assume(jnp.linalg.norm(x) > 0.1)
  np.testing.assert_allclose(
    normalize.unit(x), normalize.unit(factor * x), atol=1e-5
  )
