"""The Temporal Latent Bottleneck against a loop over blocks in numpy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors

from nam_jax.baselines import temporal_latent
from tests import agreement, linen_tools
from tests.reference import attention_layers
from tests.reference import temporal_latent as reference

B, S, D, STATES, MLP = 2, 7, 8, 3, 10
SMALL = temporal_latent.TemporalLatentEncoder(
  num_heads=2,
  qkv_dim=4,
  mlp_dim=MLP,
  block_size=3,
  num_state_tokens=STATES,
  self_to_cross_ratio_input_updater=1,
)
LARGE = SMALL.clone(
  num_cross_layers_input_updater=2,
  num_cross_layers_state_updater=2,
  use_global_pos_encoding=True,
  positions="learned",
  max_len=9,
)


def tokens(s):
  """Random tokens, and a mask with holes and an empty block."""
  rng = np.random.default_rng(s)
  mask = rng.random((B, s)) < 0.7
  mask[0], mask[1, 0], mask[1, 3:6] = True, True, False
  return np.float32(rng.normal(size=(B, s, D))), mask


@functools.cache
def params_of(encoder):
  return linen_tools.random_params(encoder, jnp.zeros((B, S, D)))


@functools.cache
def apply(encoder):
  return attention_layers.compiled(encoder.apply)


@pytest.mark.parametrize(
  ("encoder", "s"),
  [
    (SMALL, 1),
    (SMALL, 7),
    (SMALL, 37),
    (SMALL.clone(positions="learned"), 7),
    (LARGE, 7),
  ],
)
def test_encoder_equals_a_loop_over_blocks(encoder, s):
  (x, mask), params = tokens(s), params_of(encoder)
  wide = jax.tree.map(np.float64, params["params"])
  expected = [
    reference.encode(wide, *sequence, encoder)
    for sequence in zip(np.float64(x), mask, strict=True)
  ]
  mask = None if mask.all() else mask
  actual = apply(encoder)(params, x, mask=mask)
  agreement.assert_agree(actual, np.stack(expected), 1e-5)


def test_padding_changes_nothing():
  (x, mask), (longer, _) = tokens(7), tokens(37)
  longer[:, :7][mask] = x[mask]
  more = np.pad(mask, ((0, 0), (0, 30)))
  outputs = apply(SMALL)(params_of(SMALL), x, mask=mask)
  padded = apply(SMALL)(params_of(SMALL), longer, mask=more)
  agreement.assert_agree(padded, outputs, 1e-5)


def test_gradients_are_finite_without_any_real_token():
  encoder = SMALL.clone(self_to_cross_ratio_input_updater=0)
  x, mask = tokens(7)
  mask[0] = False

  @attention_layers.compiled
  def grad(params, x, mask):
    def total(params, x):
      return jnp.sum(encoder.apply(params, x, mask=mask) ** 2)

    return jax.grad(total, (0, 1))(params, x)

  for scale in (0, 1):
    gradients = grad(params_of(encoder), np.float32(scale) * x, mask)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradients))
    assert (gradients[1][~mask] == 0).all()
    assert (gradients[1][mask] != 0).any()


def test_bfloat16():
  x, mask = tokens(7)
  # flax's LayerNorm itself promotes bfloat16 to float32.
  with jax.numpy_dtype_promotion("standard"):
    narrow = apply(SMALL.clone(dtype=jnp.bfloat16))(
      params_of(SMALL), x, mask=mask
    )
  assert narrow.dtype == jnp.bfloat16
  outputs = apply(SMALL)(params_of(SMALL), x, mask=mask)
  agreement.assert_agree(np.float32(narrow), outputs, 0.1)


def test_cost_is_linear():
  def flops(s):
    x = jax.ShapeDtypeStruct((1, s, D), jnp.float32)
    return (
      jax.jit(SMALL.apply).lower(params_of(SMALL), x).cost_analysis()["flops"]
    )

  # The work of a loop is counted once, whatever its length.
  assert flops(400) < 2.1 * flops(200)


def test_number_of_parameters():
  encoder = LARGE.clone(self_to_cross_ratio_input_updater=2)
  params = params_of(encoder)["params"]
  assert set(params) == {
    "posembed_input",
    "encoder_norm",
    "vertical_block_0_cross",
    "vertical_block_1_cross",
    *(
      f"horizontal_block_{i}_{layer}"
      for i in range(2)
      for layer in ("self_0", "self_1", "cross")
    ),
  }
  # Attention 4 D qkv, MLP, and the norms: 2 of a self block, 3 of a cross one.
  block = 4 * D * 4 + 2 * D * MLP + MLP + D
  expected = 8 * block + (4 * 2 + 4 * 3 + 1) * 2 * D + 9 * D
  assert sum(p.size for p in jax.tree.leaves(params)) == expected
  local = params_of(SMALL.clone(positions="learned"))["params"]
  assert local["posembed_input"]["pos_embedding"].shape == (1, 3, D)


def test_dropout_acts_in_training_only():
  dropping = SMALL.clone(dropout_rate=0.3)
  x, _ = tokens(7)
  jax.eval_shape(dropping.apply, params_of(SMALL), x)
  train = functools.partial(dropping.apply, train=True)
  with pytest.raises(errors.InvalidRngError, match="dropout"):
    jax.eval_shape(train, params_of(SMALL), x)


def test_each_block_drops_other_weights():
  """A state token attends twice to a token: it sees it 0, 1 or 2 times."""
  encoder = temporal_latent.TemporalLatentEncoder(
    num_heads=1,
    qkv_dim=D,
    mlp_dim=1,
    block_size=1,
    num_state_tokens=1,
    num_cross_layers_input_updater=0,
    attention_dropout_rate=0.5,
  )
  x = np.repeat(tokens(1)[0][:1], 2, axis=1).repeat(64, axis=0)
  params = jax.tree.map(np.copy, params_of(encoder))
  for dense in params["params"]["vertical_block_0_cross"]["mlp"].values():
    dense["kernel"][:], dense["bias"][:] = 0, 0
  run = attention_layers.compiled(functools.partial(encoder.apply, train=True))
  key = jax.random.key(0, impl="rbg")
  states = run(params, x, rngs={"dropout": key})[:, 0]
  assert len(np.unique(states.round(4), axis=0)) == 3


def test_bad_sizes_are_refused():
  def shape_of(encoder, s=7):
    x = jax.ShapeDtypeStruct((B, s, D), jnp.float32)
    jax.eval_shape(encoder.init, jax.random.key(0), x)

  with pytest.raises(ValueError, match="num_heads=3 does not divide qkv_dim=4"):
    SMALL.clone(num_heads=3)
  with pytest.raises(ValueError, match="got 'rotary'"):
    SMALL.clone(positions="rotary")
  with pytest.raises(ValueError, match="10 tokens is longer than max_len=9"):
    shape_of(LARGE, 10)
  with pytest.raises(ValueError, match="need max_len"):
    shape_of(LARGE.clone(max_len=None))
  with pytest.raises(ValueError, match="at least one token, got 0"):
    shape_of(SMALL.clone(block_size=0))
