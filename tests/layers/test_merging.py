"""Neighbouring tokens become one: against a direct computation in numpy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.layers import merging
from tests import linen_tools

B, S, D = 2, 7, 4
# A run without a real token, one with a hole, one cut at the end.
REAL = np.array([[1, 1, 0, 0, 0, 0, 1], [1, 0, 1, 1, 1, 1, 0]], bool)


def merged(params, x, real, count):
  """Token t of a row is a projection of its tokens t count, t count + 1 ..."""
  kernel, bias = (
    np.float64(params["params"]["Dense_0"][name]) for name in ("kernel", "bias")
  )
  y = np.zeros((B, -(-x.shape[1] // count), D))
  mask = np.zeros(y.shape[:2], bool)
  for b, s in np.ndindex(x.shape[:2]):
    t, place = divmod(s, count)
    if real[b, s]:
      y[b, t] += x[b, s] @ kernel[place * D : (place + 1) * D]
      mask[b, t] = True
  return y + bias, mask


@pytest.mark.parametrize("count", [1, 2, 3, 7, 9])
def test_a_run_is_projected_to_one_token(inputs, count):
  layer = merging.MergeTokens(count)
  params = linen_tools.random_params(layer, inputs, REAL)

  def total(x, mask):
    y, _ = layer.apply(params, x, mask)
    return jnp.sum(y**2)

  @linen_tools.compiled
  def run(x, mask):
    unmasked, none = layer.apply(params, x)
    assert none is None
    return layer.apply(params, x, mask), unmasked, jax.grad(total)(x, mask)

  (y, mask), unmasked, gradient = run(inputs, REAL)
  expected, expected_mask = merged(params, inputs, REAL, count)
  linen_tools.close(y, expected)
  np.testing.assert_array_equal(mask, expected_mask)
  linen_tools.close(unmasked, merged(params, inputs, REAL | True, count)[0])
  spoilt = run(np.where(REAL[..., None], inputs, np.float32(np.nan)), REAL)
  linen_tools.close((spoilt[0], spoilt[2]), ((y, mask), gradient), 0)
  assert not gradient[~REAL].any()
  step = np.random.default_rng(1).normal(size=inputs.shape)

  def moved(size):
    return (merged(params, inputs + size * step, REAL, count)[0] ** 2).sum()

  slope = (moved(1e-5) - moved(-1e-5)) / 2e-5
  np.testing.assert_allclose((gradient * step).sum(), slope, rtol=1e-4)


@pytest.mark.parametrize("shape", [(0, S, D), (B, 0, D)])
def test_nothing_can_be_merged(shape):
  x, layer = jnp.zeros(shape), merging.MergeTokens(3)
  (y, mask), _ = jax.eval_shape(
    layer.init_with_output, jax.random.key(0), x, jnp.ones(shape[:2], bool)
  )
  assert y.shape == (shape[0], -(-shape[1] // 3), D)
  assert mask.shape == y.shape[:2]


def test_the_result_has_the_type_of_the_tokens(inputs):
  layer = merging.MergeTokens(2, dtype=jnp.bfloat16)
  params = linen_tools.random_params(layer, inputs)
  y, _ = linen_tools.compiled(layer.apply)(params, inputs)
  assert y.dtype == np.float32
  expected, _ = merged(params, inputs, REAL | True, 2)
  linen_tools.close(y, expected, 0.03)


def test_masks_merge_in_one_step_or_in_two():
  for s in (0, 1, 7, 12):
    mask = np.random.default_rng(s).random((3, s)) < 0.3
    once = merging.merged_mask(jnp.asarray(mask), 6)
    twice = merging.merged_mask(merging.merged_mask(jnp.asarray(mask), 2), 3)
    np.testing.assert_array_equal(once, twice)


@pytest.mark.parametrize(
  ("merge", "scan", "message"),
  [
    ((2,), False, r"merge=\(2,\) must have one number, 1 or more, for each of"),
    ((1, 2, 1), False, "2 layers"),
    ((0, 2), False, "1 or more"),
    ((1, 2), True, "needs scan=False"),
  ],
)
def test_wrong_numbers_are_refused(merge, scan, message):
  with pytest.raises(ValueError, match=message):
    merging.check(merge, 2, scan)


def test_no_number_merges_nothing():
  merging.check((), 2, True)
  merging.check((1, 4), 2, False)
