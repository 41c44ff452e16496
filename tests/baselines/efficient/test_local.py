"""Local attention against the full matrix, and inside `SelfAttention`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.baselines.efficient import local
from nam_jax.layers import self_attention
from tests import agreement, linen_tools
from tests.reference import attention as reference

attend = functools.partial(local.local_attention, block_size=5)
run = reference.with_gradient(attend)


def same_block(s):
  block = np.arange(s) // 5
  return block[:, None] == block[None]


@pytest.mark.parametrize("s", [1, 7, 37])
def test_every_token_attends_to_its_block(s):
  reference.assert_attends(run, same_block(s), s)


def test_bfloat16():
  reference.assert_attends_in_bfloat16(attend, same_block(12), 12)


def test_padding_changes_nothing():
  (*inputs, _), _ = reference.tokens(37)
  reference.assert_padding_is_inert(reference.outputs_of(run), inputs, 7)


def test_cost_is_linear():
  once, twice = (reference.cost(attend, s) for s in (200, 400))
  assert twice < 2.1 * once


def test_blocks_have_tokens():
  x = jnp.zeros((1, 3, 1, 2))
  with pytest.raises(ValueError, match="at least one token, got 0"):
    local.local_attention(x, x, x, block_size=0)


def test_one_block_in_self_attention_is_full_attention():
  x = np.float32(np.random.default_rng(0).normal(size=(2, 6, 8)))
  mask = np.arange(6)[None] < np.array([[6], [4]])
  full = self_attention.SelfAttention(num_heads=2)
  layer = full.clone(attention_fn=local.local_attention_fn())
  params = linen_tools.random_params(layer, x)

  @linen_tools.compiled
  def both(params, x, mask):
    return [a.apply(params, x, mask=mask) for a in (layer, full)]

  outputs, expected = both(params, x, mask)
  agreement.assert_agree(outputs[mask], expected[mask])


def test_weights_drop_out_one_by_one_in_training():
  attention_fn = local.local_attention_fn(block_size=4)
  shape = (8, 8, 2, 1)

  @linen_tools.compiled
  def run(key):
    x, options = jnp.zeros(shape), {"dropout_rng": key, "dropout_rate": 0.5}
    return (
      attention_fn(x, x, x + 1, deterministic=True, **options),
      attention_fn(x, x, x + 1, deterministic=False, **options),
    )

  without, dropped = run(jax.random.key(0, impl="rbg"))
  assert (without == 1).all()
  kept = 2 * dropped  # each of four weights 1/4 is zero or 1/2
  np.testing.assert_array_equal(kept, np.round(kept))
  assert set(kept.ravel()) == set(range(5))
  assert 1.7 < kept.mean() < 2.3


def test_masks_of_pairs_are_refused():
  x, mask = jnp.zeros((2, 3, 1, 2)), jnp.ones((2, 1, 3, 3), bool)
  with pytest.raises(ValueError, match=r"hide only keys.*\(2, 1, 3, 3\)"):
    local.local_attention_fn()(x, x, x, mask=mask)
