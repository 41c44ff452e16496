"""Longformer attention against the full matrix."""

import functools

import jax
import numpy as np
import pytest

from nam_jax.baselines.efficient import longformer
from tests import agreement, linen_tools
from tests.reference import attention as reference

D = 6


def attend_within(window, num_global=0):
  return functools.partial(
    longformer.sliding_window_attention,
    sliding_window_size=window,
    num_global=num_global,
  )


def visible(s, before, after, num_global=0):
  distance = np.arange(s)[None] - np.arange(s)[:, None]
  near = (distance >= -before) & (distance <= after)
  return near | (np.arange(s) < num_global)[None]


run = reference.with_gradient(attend_within(5, num_global=4))


@pytest.mark.parametrize("s", [1, 7, 37])
def test_tokens_see_a_window_and_the_first_tokens(s):
  reference.assert_attends(run, visible(s, 2, 2, 4), s)


def test_even_windows_see_one_more_behind_the_token_in_bfloat16():
  reference.assert_attends_in_bfloat16(attend_within(4), visible(12, 1, 2), 12)


def test_padding_changes_nothing():
  (*inputs, _), _ = reference.tokens(37)
  reference.assert_padding_is_inert(reference.outputs_of(run), inputs, 7)


def test_cost_is_linear():
  once, twice = (reference.cost(attend_within(8, 1), s) for s in (200, 400))
  assert twice < 2.1 * once


def test_windows_have_tokens():
  layer = longformer.LongformerAttention(num_heads=2, sliding_window_size=0)
  with pytest.raises(ValueError, match="at least 1, got 0"):
    linen_tools.random_params(layer, np.zeros((1, 3, D), np.float32))


def project(params, x, *names):
  kernels = (np.float64(params["params"][name]["kernel"]) for name in names)
  return [np.einsum("bsd,dhk->bshk", x, kernel) for kernel in kernels]


def test_global_tokens_see_all_by_their_own_projections():
  layer = longformer.LongformerAttention(
    num_heads=2, sliding_window_size=3, num_global=2
  )
  x = np.float32(np.random.default_rng(0).normal(size=(2, 11, D)))
  mask = np.arange(11)[None] < np.array([[11], [8]])
  params = linen_tools.random_params(layer, x)
  allowed = visible(11, 1, 1, 2)[None] & mask[:, None]
  rest = reference.masked_attention(
    *project(params, x, "query", "key", "value"), allowed
  )
  first = reference.masked_attention(
    *project(params, x, "query_global", "key_global", "value_global"),
    np.broadcast_to(mask[:, None], allowed.shape),
  )
  heads = np.concatenate([first[:, :2], rest[:, 2:]], axis=1)
  out = np.float64(params["params"]["out"]["kernel"])
  expected = np.einsum("bshv,hvd->bsd", heads, out)
  outputs = linen_tools.compiled(layer.apply)(params, x, mask=mask)
  agreement.assert_agree(outputs[mask], expected[mask])


def test_weights_drop_out_in_training(monkeypatch):
  layer = longformer.LongformerAttention(
    num_heads=2, sliding_window_size=3, num_global=1
  )
  reference.assert_drops_out(monkeypatch, layer, 11, softmaxes=2)


def test_global_projections_exist_for_global_tokens_only():
  x = np.zeros((1, 3, D), np.float32)
  projection, out = {"kernel": (D, 2, 2)}, {"kernel": (2, 2, D)}
  layer = longformer.LongformerAttention(num_heads=2, qkv_dim=4)
  params = linen_tools.random_params(layer, x)["params"]
  window = dict.fromkeys(["query", "key", "value"], projection)
  assert jax.tree.map(np.shape, params) == {**window, "out": out}
  params = linen_tools.random_params(layer.clone(num_global=1), x)["params"]
  first = {f"{name}_global": projection for name in window}
  assert jax.tree.map(np.shape, params) == {**window, **first, "out": out}
