"""Reformer attention against a loop over sorted tokens."""

import functools

import numpy as np
import pytest

from nam_jax.baselines.efficient import layer_rng, reformer
from tests import agreement
from tests.reference import attention_layers
from tests.reference import reformer as reference

ONCE = reformer.ReformerAttention(num_heads=2, chunk_len=3, n_buckets=4)
TWICE = ONCE.clone(n_hashes=2)
PAIRS = attention_layers.compiled(
  functools.partial(reformer.lsh_attention, chunk_len=2)
)


def make_twin(layer, params):
  rng = layer_rng.layer_rng(layer.bind(params))
  rotations = rng.normal(size=(layer.n_hashes, 4, layer.n_buckets // 2))

  def twin(query, key, value, real):
    return reference.attention(query, value, real, rotations, layer.chunk_len)

  return twin


@pytest.mark.parametrize(
  ("layer", "s"), [(ONCE, 1), (ONCE, 37), (TWICE, 7), (TWICE, 37)]
)
def test_layer_equals_a_loop_over_sorted_tokens(layer, s):
  attention_layers.assert_equals_twin(layer, s, make_twin)


def test_gradient():
  attention_layers.assert_gradient_equals_twin(TWICE, 7, make_twin)


def test_padding_changes_no_real_output():
  attention_layers.assert_padding_is_inert(TWICE, 7, 37)


def test_finite_without_any_real_token():
  attention_layers.assert_finite_without_real_tokens(TWICE, 7)


def test_bfloat16():
  # In one chunk, rounding cannot move a token to another one.
  attention_layers.assert_close_in_bfloat16(ONCE.clone(chunk_len=7), 7)


def test_weights_drop_out_in_training_only():
  attention_layers.assert_drops_in_training_only(TWICE, 7)


def test_cost_is_linear():
  once, twice = (attention_layers.flops(TWICE, s) for s in (200, 400))
  assert 1.5 * once < twice < 2.3 * once


def test_keys_have_no_parameters():
  assert attention_layers.shapes(ONCE.clone(qkv_dim=6)) == {
    "query": {"kernel": (8, 2, 3)},
    "value": {"kernel": (8, 2, 3)},
    "out": {"kernel": (2, 3, 8)},
  }


def attend(mask):
  """One head and number per token; the hash is the number's sign."""
  query, value = np.float32([[9, -9, -9, 9], [1, 10, 100, 1000]])
  return PAIRS(
    query.reshape(1, 4, 1, 1),
    value.reshape(1, 4, 1, 1),
    np.ones((1, 1, 1), np.float32),
    mask=np.array([mask], bool),
  )[0, :, 0, 0]


def test_tokens_attend_to_their_chunk_and_the_one_before_it():
  # Sorted by hash: 0, 3 and then 1, 2. A score is 9 or -9.
  np.testing.assert_allclose(
    attend([1, 1, 1, 1]), [1000, 100, 10, 1], rtol=1e-4
  )
  # Sorted: 3 and 1, then 2 alone in the second chunk.
  outputs = attend([0, 1, 1, 1])
  np.testing.assert_allclose(outputs[1:], [1000, 10, 10], rtol=1e-4)


def test_a_token_attends_to_itself_only_if_it_sees_no_other():
  assert attend([0, 0, 1, 0])[2] == 100


def test_hashes_are_fixed_by_the_seed():
  x, mask = attention_layers.tokens(37)
  params = attention_layers.params_of(ONCE)
  first, other = (
    attention_layers.apply(a)(params, x, mask=mask)
    for a in (ONCE, ONCE.clone(seed=1))
  )
  assert agreement.relative(other, first) > 0.01


def test_bad_numbers_of_hashes_are_refused():
  with pytest.raises(ValueError, match="n_buckets=3 must be even"):
    ONCE.clone(n_buckets=3)
  with pytest.raises(ValueError, match="n_hashes=0 must be positive"):
    ONCE.clone(n_hashes=0)
