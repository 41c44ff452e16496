"""Outer-product attention against sums over pairs of tokens."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.ops import normalize, outer_product, recurrent
from tests.agreement import Random, assert_agree


def by_pairs(q, k, v, mask, causal, p_w, p_r):
  """sum_t p_w v_t (mu(k_t) . mu(q_s)) in numpy, float64."""
  q, k, v = (np.asarray(a, np.float64) for a in (q, k, v))
  q, k = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))
  weights = np.einsum("bshk,bthk->bsth", q, k)
  weights *= np.asarray(p_r)[:, :, None] * np.asarray(p_w)[:, None]
  weights *= (
    np.asarray(mask)[:, None, :, None] * np.asarray(mask)[..., None, None]
  )
  if causal:
    weights *= np.tri(q.shape[1])[None, :, :, None]
  return np.einsum("bsth,bthv->bshv", weights, v)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("s", [1, 63, 100])
def test_equals_the_sum_over_pairs(causal, s):
  rng = Random(s)
  q, k, v = (
    rng.normal(2, s, 3, 4),
    rng.normal(2, s, 3, 4),
    rng.normal(2, s, 3, 5),
  )
  p_w, p_r, mask = rng.uniform(2, s, 3), rng.uniform(2, s, 3), rng.mask(2, s)
  actual = outer_product.outer_product_attention(
    q, k, v, mask=mask, causal=causal, p_w=p_w, p_r=p_r
  )
  assert_agree(actual, by_pairs(q, k, v, mask, causal, p_w, p_r))
  assert not actual[~mask].any()


def test_causal_equals_a_memory_that_is_never_erased():
  rng = Random()
  q, k, v = (
    rng.normal(1, 70, 2, 4),
    rng.normal(1, 70, 2, 4),
    rng.normal(1, 70, 2, 3),
  )

  def attention(q, k, v):
    out = outer_product.outer_product_attention(q, k, v, causal=True)
    return jnp.sum(jnp.sin(out))

  def scan(q, k, v):
    q, k = normalize.unit(q), normalize.unit(k)
    return jnp.sum(jnp.sin(recurrent.memory_scan(q, k, v, p_e=0)[0]))

  grads = [jax.jit(jax.grad(f, (0, 1, 2)))(q, k, v) for f in (attention, scan)]
  assert_agree(*grads, tolerance=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_padding_never_changes_a_real_output(causal):
  rng = Random()
  q, k, v = (rng.normal(2, 40, 2, 4) for _ in range(3))
  short = outer_product.outer_product_attention(q, k, v, causal=causal)
  pad = ((0, 0), (0, 30), (0, 0), (0, 0))
  long = outer_product.outer_product_attention(
    *(jnp.pad(a, pad, constant_values=9.0) for a in (q, k, v)),
    mask=jnp.arange(70)[None] < jnp.full((2, 1), 40),
    causal=causal,
  )
  assert_agree(long[:, :40], short, 1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_bfloat16_sums_in_float32(causal):
  rng = Random()
  arrays = [rng.normal(1, 512, 2, 8).astype(jnp.bfloat16) for _ in range(3)]
  narrow = outer_product.outer_product_attention(*arrays, causal=causal)
  exact = outer_product.outer_product_attention(
    *(a.astype(jnp.float32) for a in arrays), causal=causal
  )
  assert narrow.dtype == jnp.bfloat16
  # Keys and queries are rounded to 2^-9 once more after normalisation.
  assert_agree(narrow.astype(jnp.float32), exact, 2**-6)


def plainly(q, k, v, mask, p_w, p_r):
  """Bidirectional attention as one equation, with an automatic gradient."""
  v = jnp.where(mask[..., None, None], v, 0)
  reads = jnp.einsum(
    "bth,bthv,bthk,bshk->bshv", p_w, v, normalize.unit(k), normalize.unit(q)
  )
  return jnp.where(mask[..., None, None], p_r[..., None] * reads, 0)


@pytest.mark.parametrize("s", [1, 63])
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_gradient_is_that_of_the_equation(dtype, s):
  rng = Random(s)
  q, k, v = (rng.normal(2, s, 3, d) for d in (4, 4, 5))
  k = k.at[0, 0].multiply(1e-6).at[1, 0].set(0)  # too short for a direction
  p_w, p_r, mask = rng.uniform(2, s, 3), rng.uniform(2, s, 3), rng.mask(2, s)
  q, k, v, p_w, p_r = (a.astype(dtype) for a in (q, k, v, p_w, p_r))

  def fast(q, k, v, p_w, p_r):
    attend = outer_product.outer_product_attention
    out = attend(q, k, v, mask=mask, p_w=p_w, p_r=p_r)
    return jnp.sum(jnp.sin(out.astype(jnp.float32)))

  def slow(q, k, v, p_w, p_r):
    return jnp.sum(jnp.sin(plainly(q, k, v, mask, p_w, p_r)))

  operands = (q, k, v, p_w, p_r)
  actual = jax.jit(jax.grad(fast, range(5)))(*operands)
  assert {g.dtype for g in actual} == {jnp.dtype(dtype)}
  widened = [a.astype(jnp.float32) for a in operands]
  expected = jax.jit(jax.grad(slow, range(5)))(*widened)
  actual = [a.astype(jnp.float32) for a in actual]
  assert_agree(actual, expected, 1e-5 if dtype == jnp.float32 else 2**-5)


def test_zero_keys_and_queries_have_finite_gradients():
  zero = jnp.zeros((1, 4, 1, 3))

  def total(q, k, v):
    return jnp.sum(outer_product.outer_product_attention(q, k, v))

  for grad in jax.grad(total, (0, 1, 2))(zero, zero, zero):
    assert jnp.isfinite(grad).all()
