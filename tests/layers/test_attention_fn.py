"""The attention functions inside flax's own layers, linen and nnx."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from flax import nnx

from nam_jax.layers.attention_fn import linear_attention_fn, nam_attention_fn
from tests import linen_tools
from tests.agreement import Random, assert_agree

FUNCTIONS = {"nam": nam_attention_fn, "linear": linear_attention_fn}
functions = pytest.mark.parametrize("fn", FUNCTIONS.values(), ids=FUNCTIONS)


def call(fn, *arrays, **options):
  """fn compiled; arrays among the options are compiled in."""
  return linen_tools.compiled(lambda *a: fn(*a, **options))(*arrays)


def inputs(s=5, t=7):
  rng = Random()
  return rng.normal(2, s, 3, 4), rng.normal(2, t, 3, 4), rng.normal(2, t, 3, 4)


@functions
def test_a_key_mask_equals_the_same_mask_over_all_pairs(fn):
  q, k, v = inputs()
  mask = Random(1).mask(2, 1, 1, 7).at[..., 0].set(True)
  linear = call(fn, q, k, v, mask=mask)
  quadratic = call(fn, q, k, v, mask=jnp.broadcast_to(mask, (2, 1, 5, 7)))
  assert_agree(linear, quadratic, 1e-5)
  kept = [
    (q[i : i + 1], k[i : i + 1, m], v[i : i + 1, m])
    for i, m in enumerate(np.asarray(mask[:, 0, 0]))
  ]
  assert_agree(linear, np.concatenate([call(fn, *a) for a in kept]), 1e-5)


@functions
def test_what_is_never_seen_can_hold_anything(fn):
  q, k, v = inputs(7, 7)
  real = np.asarray(Random(1).mask(2, 7).at[:, 0].set(True))
  keys, queries = real[:, None, None], real[:, None, :, None]

  def total(q, padded_q, k, v):
    read = fn(q, k, v, mask=jnp.asarray(keys))
    by_pairs = fn(padded_q, k, v, mask=jnp.asarray(keys & queries))
    return jnp.sum(jnp.sin(read)) + jnp.sum(jnp.sin(by_pairs))

  learn = linen_tools.compiled(jax.value_and_grad(total, (0, 1, 2, 3)))
  expected = learn(q, q, k, v)
  padded = (jnp.where(real[..., None, None], x, jnp.nan) for x in (q, k, v))
  linen_tools.close(learn(q, *padded), expected)


@functions
def test_causal_equals_a_triangular_mask_over_all_pairs(fn):
  q, k, v = inputs(7, 7)
  triangle = jnp.broadcast_to(jnp.tril(jnp.ones((7, 7), bool)), (2, 1, 7, 7))
  causal = call(fn, q, k, v, is_causal=True)
  assert_agree(causal, call(fn, q, k, v, mask=triangle), 1e-5)
  keys = Random(1).mask(2, 1, 1, 7).at[..., 0].set(True)
  by_pairs = call(fn, q, k, v, mask=keys & triangle)
  for mask in (keys, jnp.broadcast_to(keys, (2, 3, 1, 7))):
    causal = call(fn, q, k, v, mask=mask, is_causal=True)
    assert_agree(causal, by_pairs, 1e-5)


@functions
def test_linen_attention_respects_the_mask(fn):
  x = Random().normal(2, 6, 8)
  layer = nn.MultiHeadDotProductAttention(num_heads=2, attention_fn=fn)
  variables = linen_tools.random_params(layer, x)
  apply = linen_tools.compiled(layer.apply)
  mask = jnp.broadcast_to(jnp.arange(6) < 4, (2, 1, 1, 6))
  masked = apply(variables, x, mask=mask)
  short = apply(variables, x[:, :4])
  assert_agree(masked[:, :4], short, 1e-5)
  pairs = nn.make_attention_mask(mask[:, 0, 0], mask[:, 0, 0], dtype=bool)
  by_pairs = apply(variables, x, mask=pairs)
  assert_agree(by_pairs[:, :4], short, 1e-5)


@functions
def test_nnx_attention_respects_the_mask_and_is_causal(fn):
  x = Random().normal(2, 6, 8)
  layer = nnx.MultiHeadAttention(
    num_heads=2, in_features=8, decode=False, attention_fn=fn, rngs=nnx.Rngs(0)
  )
  mask = jnp.broadcast_to(jnp.arange(6) < 4, (2, 1, 1, 6))
  assert_agree(layer(x, mask=mask)[:, :4], layer(x[:, :4]), 1e-5)


@functions
def test_dropout_drops_writes_and_keeps_their_mean(fn):
  q, k, v = inputs()
  drop = functools.partial(
    fn, q, k, v, dropout_rate=0.5, deterministic=False, broadcast_dropout=False
  )
  keys = jax.random.split(jax.random.key(0), 2000)
  dropped = linen_tools.compiled(jax.vmap(lambda rng: drop(dropout_rng=rng)))
  dropped, exact = dropped(keys), call(fn, q, k, v)
  assert np.abs(dropped[0] - exact).max() > 1e-2
  assert_agree(dropped.mean(axis=0), exact, 0.1)


@pytest.mark.parametrize(
  ("name", "value"), [("bias", jnp.zeros((2, 3, 5, 7))), ("precision", "high")]
)
def test_what_needs_attention_weights_is_refused(name, value):
  with pytest.raises(ValueError, match=f"{name} is not supported here"):
    nam_attention_fn(*inputs(), **{name: value})


@functions
def test_weights_cannot_be_recorded(fn):
  layer = nn.MultiHeadDotProductAttention(num_heads=2, attention_fn=fn)
  with pytest.raises(ValueError, match="sow_weights=True is not supported"):
    layer.init(jax.random.key(0), jnp.zeros((2, 6, 8)), sow_weights=True)
