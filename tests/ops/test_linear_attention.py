"""Linear attention against the full attention matrix in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.ops import linear_attention
from tests.reference import linear_attention as reference

B, H, K, V = 2, 2, 3, 4


def arguments(s, t=None, dtype=jnp.float32):
  rng = np.random.default_rng(s)
  t = s if t is None else t
  shapes = [(B, s, H, K), (B, t, H, K), (B, t, H, V), (B, s, H, V)]
  return [jnp.asarray(2 * rng.normal(size=shape), dtype) for shape in shapes]


def holes(s):
  mask = np.random.default_rng(s).uniform(size=(B, s)) < 0.7
  mask[0, 0] = False
  return mask


def spoilt(x, mask):
  """x with NaN at masked tokens, which may hold anything."""
  return jnp.where(mask[..., None, None], x, jnp.nan)


def run(q, k, v, gradient, **options):
  """Outputs and gradients of their product with `gradient`, in one jit."""

  @jax.jit
  def all_of_it(q, k, v):
    def attend(*qkv):
      return linear_attention.linear_attention(*qkv, **options)

    outputs, backward = jax.vjp(attend, q, k, v)
    return outputs, *backward(gradient)

  return all_of_it(q, k, v)


def assert_close(actual, expected, tol=2e-4):
  for a, e in zip(actual, expected, strict=True):
    np.testing.assert_allclose(a, e, rtol=tol, atol=tol)


@pytest.mark.parametrize("s", [1, 63, 64, 100])
def test_causal_equals_the_masked_matrix(s):
  args, mask = arguments(s), holes(s)
  allowed = mask[:, None] & np.tri(s, dtype=bool)[None] & mask[:, :, None]
  expected = reference.linear_attention(*args[:3], allowed, args[3])
  args[:3] = [spoilt(x, mask) for x in args[:3]]
  assert_close(run(*args, mask=jnp.array(mask), causal=True), expected)


def test_causal_without_mask_at_another_chunk_size():
  args = arguments(23)
  allowed = np.broadcast_to(np.tri(23, dtype=bool), (B, 23, 23))
  expected = reference.linear_attention(*args[:3], allowed, args[3])
  assert_close(run(*args, causal=True, chunk_size=5), expected)


def test_bidirectional_equals_the_masked_matrix():
  args, mask = arguments(17), holes(17)
  allowed = mask[:, None] & mask[:, :, None]
  expected = reference.linear_attention(*args[:3], allowed, args[3])
  args[:3] = [spoilt(x, mask) for x in args[:3]]
  assert_close(run(*args, mask=jnp.array(mask)), expected)


def test_queries_may_read_another_sequence():
  args, mask = arguments(5, 9), holes(9)
  allowed = np.broadcast_to(mask[:, None], (B, 5, 9))
  expected = reference.linear_attention(*args[:3], allowed, args[3])
  args[1:3] = [spoilt(x, mask) for x in args[1:3]]
  assert_close(run(*args, key_mask=jnp.array(mask)), expected)


@pytest.mark.parametrize("causal", [False, True])
def test_finite_without_any_real_token_and_at_extreme_inputs(causal):
  q, k, v, gradient = arguments(6)
  mask = jnp.zeros((B, 6), bool)
  results = run(q, k, v, gradient, mask=mask, causal=causal)
  assert all((x == 0).all() for x in results)
  results = run(-1e4 * q**2, -1e4 * k**2, v, gradient, causal=causal)
  assert all(np.isfinite(x).all() for x in results)


@pytest.mark.parametrize("causal", [False, True])
def test_bfloat16_is_rounded_only_at_the_end(causal):
  attend = jax.jit(
    functools.partial(linear_attention.linear_attention, causal=causal)
  )
  narrow = arguments(300, dtype=jnp.bfloat16)[:3]
  wide = [np.float32(x) for x in narrow]
  outputs = attend(*narrow)
  assert outputs.dtype == jnp.bfloat16
  np.testing.assert_array_equal(outputs, attend(*wide).astype(jnp.bfloat16))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(0, 3, H, K), (B, 0, H, K), (B, 3, 0, K)])
def test_nothing_in_nothing_out(shape, causal):
  x = jnp.zeros(shape)
  results = run(x, x, x, x, mask=jnp.ones(shape[:2], bool), causal=causal)
  assert all(y.shape == shape for y in results)


def test_more_keys_than_queries_cannot_be_causal():
  q, k, v, _ = arguments(5, 9)
  with pytest.raises(ValueError, match="got 9 and 5"):
    linear_attention.linear_attention(q, k, v, causal=True)


def test_causal_gradient_never_holds_the_full_matrix():
  s = 4096
  shape = jax.ShapeDtypeStruct((1, s, 1, 8), jnp.float32)

  def total(q, k, v):
    o = linear_attention.linear_attention(q, k, v, causal=True)
    return jnp.sum(o**2)

  grad = jax.jit(jax.grad(total, (0, 1, 2)))
  compiled = grad.lower(shape, shape, shape).compile()
  temporaries = compiled.memory_analysis().temp_size_in_bytes
  assert temporaries < s * s  # a quarter of one float32 matrix


def test_lowers_for_accelerators_under_vmap():
  stacked = [np.stack([x, x]) for x in arguments(70)]
  traced = jax.jit(jax.vmap(lambda *a: run(*a, causal=True))).trace(*stacked)
  for platform in ("cuda", "tpu"):
    assert traced.lower(lowering_platforms=(platform,))
