"""Linformer attention against the full matrix."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.baselines.efficient import linformer
from tests import agreement, linen_tools
from tests.reference import attention as reference

D = 6
layer = linformer.LinformerAttention(
  num_heads=2, max_len=16, qkv_dim=4, low_rank_features=3
)


@functools.cache
def case(s):
  x = np.float32(np.random.default_rng(s).normal(size=(3, s, D)))
  return linen_tools.random_params(layer, x, scale=0.7), x


def by_hand(params, x, mask):
  kernels = {
    name: np.float64(p.get("kernel", p) if isinstance(p, dict) else p)
    for name, p in params["params"].items()
  }
  x = x * mask[..., None]
  query, key, value = (
    np.einsum("bsd,dhk->bshk", x, kernels[name])
    for name in ("query", "key", "value")
  )
  mixture = kernels["lr_kernel"][: x.shape[1]]
  key, value = (
    np.einsum("bthk,tn->bnhk", tokens, mixture) for tokens in (key, value)
  )
  allowed = np.ones((x.shape[1], 3), bool)
  heads = reference.masked_attention(query, key, value, allowed)
  return np.einsum("bshv,hvd->bsd", heads, kernels["out"])


@pytest.mark.parametrize("s", [1, 16])
def test_tokens_attend_to_mixtures_of_real_tokens(s):
  params, x = case(s)
  _, mask = reference.tokens(s)
  expected = by_hand(params, x, mask)
  reference.assert_layer_equals(layer, params, x, mask, expected)


def test_bfloat16():
  params, x = case(7)
  narrow = layer.clone(dtype=jnp.bfloat16)
  outputs = linen_tools.compiled(narrow.apply)(params, x)
  assert outputs.dtype == jnp.bfloat16
  expected = by_hand(params, x, np.ones((3, 7), bool))
  agreement.assert_agree(np.float32(outputs), expected, 0.03)


def test_padding_changes_nothing():
  params, x = case(16)

  @reference.compiled_quickly
  def attend(mask, x):
    return layer.apply(params, x, mask=mask)

  reference.assert_padding_is_inert(attend, [x], 7)


def test_weights_drop_out_in_training(monkeypatch):
  reference.assert_drops_out(monkeypatch, layer, 7)


def test_parameters():
  full = linformer.LinformerAttention(num_heads=2, max_len=11, qkv_dim=4)
  params = linen_tools.random_params(full, np.zeros((1, 5, D), np.float32))
  assert jax.tree.map(np.shape, params["params"]) == {
    "query": {"kernel": (D, 2, 2)},
    "key": {"kernel": (D, 2, 2)},
    "value": {"kernel": (D, 2, 2)},
    "lr_kernel": (11, 16),
    "out": {"kernel": (2, 2, D)},
  }


def test_longer_sequences_than_max_len_are_refused():
  with pytest.raises(ValueError, match="max_len=16 is less than the length 17"):
    linen_tools.random_params(layer, np.zeros((1, 17, D), np.float32))
