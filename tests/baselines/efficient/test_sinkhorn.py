"""Sinkhorn attention against a loop over blocks."""

import functools

import numpy as np
import pytest

from nam_jax.baselines.efficient import sinkhorn
from tests import agreement
from tests.reference import attention_layers
from tests.reference import sinkhorn as reference

SOFTMAX = sinkhorn.SinkhornAttention(num_heads=2, block_size=5)
FEW = SOFTMAX.clone(max_num_blocks=3)
SINKHORN = SOFTMAX.clone(sort_activation="sinkhorn")


def make_twin(layer, params):
  return functools.partial(
    reference.attention,
    sort=np.float64(params["params"]["sort"]["kernel"]),
    block_size=layer.block_size,
    sort_activation=layer.sort_activation,
  )


@pytest.mark.parametrize(
  ("layer", "s"),
  [(SOFTMAX, 1), (SOFTMAX, 37), (FEW, 7), (FEW, 37), (SINKHORN, 7)],
)
def test_layer_equals_a_loop_over_blocks(layer, s):
  attention_layers.assert_equals_twin(layer, s, make_twin)


@pytest.mark.parametrize("layer", [FEW, SINKHORN])
def test_gradient(layer):
  attention_layers.assert_gradient_equals_twin(layer, 17, make_twin)


@pytest.mark.parametrize("layer", [FEW, SINKHORN])
def test_padding_changes_no_real_output(layer):
  attention_layers.assert_padding_is_inert(layer, 7, 37)


@pytest.mark.parametrize("layer", [FEW, SINKHORN])
def test_finite_without_any_real_token(layer):
  attention_layers.assert_finite_without_real_tokens(layer, 17)


def test_bfloat16():
  attention_layers.assert_close_in_bfloat16(FEW, 7)


def test_weights_drop_out_in_training_only():
  attention_layers.assert_drops_in_training_only(FEW, 7)


def test_cost_is_linear_beyond_the_greatest_number_of_blocks():
  once, twice = (attention_layers.flops(FEW, s) for s in (200, 400))
  assert 1.5 * once < twice < 2.1 * once


def test_parameters_are_the_projections_and_the_sorting_net():
  assert attention_layers.shapes(SOFTMAX) == {
    "query": {"kernel": (8, 2, 4)},
    "key": {"kernel": (8, 2, 4)},
    "value": {"kernel": (8, 2, 4)},
    "sort": {"kernel": (4, 25)},
    "out": {"kernel": (2, 4, 8)},
  }


def test_the_sorting_net_chooses_the_other_block():
  """Three blocks of two tokens; the net sends each to the one after it."""
  layer = sinkhorn.SinkhornAttention(1, block_size=2, max_num_blocks=3)
  x = np.repeat(np.eye(3, dtype=np.float32), 2, axis=0)[None]
  eye, none = np.eye(3, dtype=np.float32), np.zeros((3, 1, 3), np.float32)
  params = {
    "query": {"kernel": none},
    "key": {"kernel": eye[:, None]},
    "value": {"kernel": eye[:, None]},
    "sort": {"kernel": 20 * np.roll(eye, 1, axis=1)},
    "out": {"kernel": eye[None]},
  }
  outputs = attention_layers.compiled(layer.apply)({"params": params}, x)
  expected = x + np.roll(x, 1, axis=2)  # its own block and the next
  np.testing.assert_allclose(outputs, expected, atol=1e-5)


@pytest.mark.parametrize("sort_activation", sinkhorn.SORT_AXES)
def test_blocks_without_a_real_token_give_and_take_nothing(sort_activation):
  logits = np.float32(np.random.default_rng(0).normal(size=(1, 1, 4, 3)))
  real = np.array([[True, False, True, True]])
  mix = functools.partial(sinkhorn.mixture, sort_activation=sort_activation)
  weights = attention_layers.compiled(mix)(logits, real)[0, 0]
  assert (weights[1] == 0).all()
  assert (weights[:, 1] == 0).all()
  kept = logits[0, 0][[0, 2, 3]][:, [0, 2]]
  expected = reference.mixture(np.float64(kept), sort_activation)
  agreement.assert_agree(weights[[0, 2, 3]][:, [0, 2]], expected)
  total = weights.sum(axis=sinkhorn.SORT_AXES[sort_activation][-1])
  np.testing.assert_allclose(total[total > 0], 1, rtol=1e-5)


def test_unknown_activations_are_refused():
  with pytest.raises(ValueError, match="softmax, sinkhorn, got 'gumbel'"):
    SOFTMAX.clone(sort_activation="gumbel")
