"""Synthesizer attention against the full matrix of its scores."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.baselines.efficient import synthesizer
from tests import agreement, linen_tools
from tests.reference import attention as reference

D, H, WIDTH, MAX_LEN, RANK = 6, 2, 2, 9, 3
PROJECTION, OUT = {"kernel": (D, H, WIDTH)}, {"kernel": (H, WIDTH, D)}
SHAPES = {
  "random": {"random": (H, MAX_LEN, MAX_LEN)},
  "factorized_random": {
    "random1": (H, MAX_LEN, RANK),
    "random2": (H, RANK, MAX_LEN),
  },
  "dense": {
    "dense_syn": PROJECTION,
    "dense_syn_len": {"kernel": (WIDTH, MAX_LEN)},
  },
}


def make(mode, **options):
  layer = synthesizer.SynthesizerAttention(
    num_heads=H,
    max_len=MAX_LEN,
    qkv_dim=H * WIDTH,
    synthesizer_mode=mode,
    k=RANK,
    **options,
  )
  x = np.float32(np.random.default_rng(0).normal(size=(3, MAX_LEN, D)))
  return layer, linen_tools.random_params(layer, x, scale=0.7), x


def by_hand(params, x, mask):
  w = {
    name: np.float64(p.get("kernel", p) if isinstance(p, dict) else p)
    for name, p in params["params"].items()
  }
  x = x * mask[..., None]
  b, s, _ = x.shape
  scores = np.zeros((b, H, s, s))
  if "random" in w:
    scores += w["random"][None, :, :s, :s]
  if "random1" in w:
    scores += (w["random1"] @ w["random2"])[None, :, :s, :s]
  if "dense_syn" in w:
    hidden = np.maximum(np.einsum("bsd,dhk->bhsk", x, w["dense_syn"]), 0)
    scores += (hidden @ w["dense_syn_len"])[..., :s]
  if "query" in w:
    query, key = (
      np.einsum("bsd,dhk->bhsk", x, w[name]) for name in ("query", "key")
    )
    scores += query @ key.swapaxes(2, 3) / np.sqrt(WIDTH)
  # Products with the columns of the identity give back the scores.
  query = scores.swapaxes(1, 2) * np.sqrt(s)
  key = np.broadcast_to(np.eye(s)[None, :, None], (b, s, H, s))
  value = np.einsum("bsd,dhk->bshk", x, w["value"])
  allowed = np.broadcast_to(mask[:, None], (b, s, s))
  heads = reference.masked_attention(query, key, value, allowed)
  return np.einsum("bshv,hvd->bsd", heads, w["out"])


@pytest.mark.parametrize(
  ("mode", "ignore", "s"),
  [
    ("random", True, 1),
    ("factorized_random", True, MAX_LEN),
    ("dense+random", False, 7),
  ],
)
def test_scores_are_synthetic(mode, ignore, s):
  layer, params, x = make(mode, ignore_dot_product=ignore)
  _, mask = reference.tokens(s)
  x = x[:, :s]
  expected = by_hand(params, x, mask)
  reference.assert_layer_equals(layer, params, x, mask, expected)


def test_bfloat16():
  layer, params, x = make("dense+factorized_random", dtype=jnp.bfloat16)
  outputs = linen_tools.compiled(layer.apply)(params, x)
  assert outputs.dtype == jnp.bfloat16
  expected = by_hand(params, x, np.ones((3, MAX_LEN), bool))
  agreement.assert_agree(np.float32(outputs), expected, 0.03)


def test_padding_changes_nothing():
  layer, params, x = make("dense+random")

  @reference.compiled_quickly
  def attend(mask, x):
    return layer.apply(params, x, mask=mask)

  reference.assert_padding_is_inert(attend, [x], 5)


def test_weights_drop_out_in_training(monkeypatch):
  layer, _, _ = make("random", ignore_dot_product=True)
  reference.assert_drops_out(monkeypatch, layer, 7)


@pytest.mark.parametrize("mode", SHAPES)
@pytest.mark.parametrize("ignore", [False, True])
def test_parameters_are_those_in_use(mode, ignore):
  _, params, _ = make(mode, ignore_dot_product=ignore)
  names = ["value"] if ignore else ["query", "key", "value"]
  assert jax.tree.map(np.shape, params["params"]) == {
    **dict.fromkeys(names, PROJECTION),
    **SHAPES[mode],
    "out": OUT,
  }


@pytest.mark.parametrize("mode", ["vanilla", "random+random", ""])
def test_unknown_modes_are_refused(mode):
  with pytest.raises(
    ValueError, match=re.escape(f"joined by '+', got '{mode}'")
  ):
    make(mode)


def test_longer_sequences_than_max_len_are_refused():
  layer, _, _ = make("random")
  with pytest.raises(ValueError, match="max_len=9 is less than the length 10"):
    linen_tools.random_params(layer, np.zeros((1, 10, D), np.float32))
