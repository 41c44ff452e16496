"""Positions, the pre-norm block and the encoder."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from nam_jax.layers import (
  nam_attention,
  positions,
  self_attention,
  transformer,
  transformer_block,
)
from tests import linen_tools

B, S, D = 2, 5, 8
REAL = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], bool)
MASK = jnp.array(REAL)
ATTENTION = functools.partial(self_attention.SelfAttention, num_heads=2)
ENCODER = transformer.TransformerEncoder(ATTENTION, num_layers=1, mlp_dim=16)
ERASE = functools.partial(nam_attention.NAMAttention, num_heads=2, mode="erase")
BLOCK = transformer_block.TransformerBlock(ERASE, mlp_dim=16, dropout_rate=0.2)
DEEP = transformer.TransformerEncoder(ERASE, num_layers=2, mlp_dim=16)
DROPOUT = {"dropout": jax.random.key(1)}


class Nothing(nn.Module):
  """An attention layer without effect."""

  def __call__(self, x, *, mask=None, train=False):
    return jnp.zeros_like(x)


@pytest.fixture(scope="module")
def params():
  return linen_tools.random_params(ENCODER, jnp.zeros((B, S, D)))


def test_sinusoids_by_hand():
  sinusoids = jax.jit(positions.sinusoids, static_argnums=1)
  signal = sinusoids(np.array([[0.0], [3.0]], np.float32), 5)[:, 0]
  angles = 3 / 10000 ** np.array([0, 0, 0.4, 0.4, 0.8])
  expected = np.where(np.arange(5) % 2, np.cos(angles), np.sin(angles))
  np.testing.assert_allclose(signal[0], [0, 1, 0, 1, 0], atol=1e-6)
  np.testing.assert_allclose(signal[1], expected, rtol=1e-5)


def test_block_without_attention_is_a_residual_mlp_of_the_norm(inputs):
  block = transformer_block.TransformerBlock(Nothing, mlp_dim=3)
  params = linen_tools.random_params(block, inputs)
  layers = jax.tree.map(np.float64, params["params"])
  first, second = layers["MLP_0"]["Dense_0"], layers["MLP_0"]["Dense_1"]
  x = np.float64(inputs)
  norm = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
  norm = norm * layers["LayerNorm_1"]["scale"] + layers["LayerNorm_1"]["bias"]
  a = norm @ first["kernel"] + first["bias"]
  gelu = a / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))
  expected = x + gelu @ second["kernel"] + second["bias"]
  actual = linen_tools.compiled(block.apply)(params, inputs)
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_padding_changes_no_real_output(inputs, positions):
  encoder = ENCODER.clone(positions=positions, max_len=9)
  params = linen_tools.random_params(encoder, inputs)
  apply = linen_tools.compiled(encoder.apply)
  outputs = apply(params, inputs, mask=MASK)
  longer = np.concatenate([inputs, inputs + 1], axis=1)[:, :9]
  mask = np.pad(REAL, ((0, 0), (0, 4)))
  padded = apply(params, longer, mask=mask)[:, :S]
  np.testing.assert_allclose(outputs[REAL], padded[REAL], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_continued_rows_count_real_tokens_as_positions(inputs, positions):
  encoder = DEEP.clone(num_layers=1, positions=positions, max_len=9)
  variables = linen_tools.random_params(encoder, inputs)
  gaps = linen_tools.GAPS
  length = gaps.sum(1)
  first = np.arange(S)[None] < length[:, None]
  spread = np.zeros((*gaps.shape, D), np.float32)
  spread[gaps] = inputs[first]

  @linen_tools.compiled
  def both(x, spread):
    outputs, state = encoder.apply(
      variables, spread, None, mask=jnp.array(gaps), method="continue_from"
    )
    return encoder.apply(variables, x), outputs, state.position

  expected, actual, position = both(inputs, spread)
  linen_tools.close(actual[gaps], expected[first])
  np.testing.assert_array_equal(position, length)


def test_only_positions_tell_the_order_of_tokens(params, inputs):
  def run(encoder, x):
    return linen_tools.compiled(encoder.apply)(params, x)

  blind = ENCODER.clone(positions=None)
  np.testing.assert_allclose(
    run(blind, inputs[:, ::-1]),
    run(blind, inputs)[:, ::-1],
    rtol=1e-5,
    atol=1e-5,
  )
  flipped = run(ENCODER, inputs[:, ::-1])
  assert not np.allclose(flipped, run(ENCODER, inputs)[:, ::-1])


def stack(layers):
  return jax.tree.map(lambda *leaves: np.stack(leaves), *layers)


def stacked(variables):
  """The parameters of an encoder, as with scan=True."""
  params = dict(variables["params"])
  names = sorted(name for name in params if name.startswith("encoderblock_"))
  params["encoderblocks"] = stack([params.pop(name) for name in names])
  return {"params": params}


def gradient_of(encoder, variables, x):
  """(gradient, (outputs, state)) in training, from a state."""
  memories = tuple(linen_tools.normal(2, B, 2, 4, 4))

  def loss(variables, x, memories):
    outputs, state = encoder.apply(
      variables,
      x,
      transformer.EncoderState(jnp.array([0, 7]), memories),
      mask=MASK,
      train=True,
      method="continue_from",
    )
    return jnp.sum(outputs**2), (outputs, state)

  gradient = jax.grad(loss, has_aux=True)
  return linen_tools.compiled(gradient)(variables, x, memories)


@pytest.fixture(scope="module")
def deep(inputs):
  """The parameters of an encoder with two layers, and their gradient."""
  variables = linen_tools.random_params(DEEP, inputs)
  return variables, gradient_of(DEEP, variables, inputs)


def test_blocks_that_are_computed_again_give_the_same(deep, inputs):
  variables, expected = deep
  actual = gradient_of(DEEP.clone(remat=True), variables, inputs)
  linen_tools.close(actual, expected, 1e-4)


@pytest.mark.parametrize("scan", [False, True])
def test_blocks_are_computed_again(inputs, scan):
  def products(encoder):
    def loss(variables, x):
      return jnp.sum(encoder.apply(variables, x, train=True))

    variables = linen_tools.random_params(encoder, inputs)
    lowered = jax.jit(jax.grad(loss)).lower(variables, inputs)
    return lowered.as_text().count("dot_general")

  kept, again = (DEEP.clone(remat=remat, scan=scan) for remat in (False, True))
  assert products(again) > products(kept)


def test_a_scan_over_blocks_gives_the_same(deep, inputs):
  variables, (gradient, results) = deep
  encoder = DEEP.clone(remat=True, scan=True)
  actual = gradient_of(encoder, stacked(variables), inputs)
  linen_tools.close(actual, (stacked(gradient), results), 1e-4)


def test_scanned_blocks_start_with_parameters_of_their_own(deep, inputs):
  encoder = DEEP.clone(scan=True)
  params = linen_tools.compiled(encoder.init)(jax.random.key(0), inputs)
  assert jax.tree.structure(params) == jax.tree.structure(stacked(deep[0]))
  blocks = params["params"]["encoderblocks"]
  first, second = blocks["MLP_0"]["Dense_0"]["kernel"]
  assert not np.allclose(first, second)


def test_a_block_under_remat_takes_mask_and_train_by_position(inputs):
  Block = nn.remat(transformer_block.TransformerBlock, static_argnums=3)
  again = Block(BLOCK.attention, BLOCK.mlp_dim, BLOCK.dropout_rate)
  variables = linen_tools.random_params(BLOCK, inputs)

  @linen_tools.compiled
  def both(x):
    calls = BLOCK.apply, again.apply
    return [call(variables, x, MASK, True, rngs=DROPOUT) for call in calls]

  plain, again = both(inputs)
  linen_tools.close(again, plain)


def test_blocks_under_scan_take_mask_and_train_by_position(inputs):
  Blocks = nn.scan(
    transformer_block.TransformerBlock,
    length=2,
    variable_axes={"params": 0},
    split_rngs={"params": True, "dropout": True},
    in_axes=(0, nn.broadcast, nn.broadcast),
    methods=["continue_from"],
  )
  blocks = Blocks(BLOCK.attention, BLOCK.mlp_dim, BLOCK.dropout_rate)
  layers = [
    linen_tools.random_params(BLOCK, inputs, scale=scale)
    for scale in (0.2, 0.3)
  ]
  call = functools.partial(
    blocks.apply, stack(layers), rngs=DROPOUT, method="continue_from"
  )

  @linen_tools.compiled
  def run(x):
    y, memories = x, []
    for variables in layers:
      y, memory = BLOCK.apply(variables, y, None, MASK, method="continue_from")
      memories.append(memory)
    loop = y, jnp.stack(memories)
    return loop, call(x, None, MASK, False), call(x, None, MASK, True)[0]

  expected, actual, dropped = run(inputs)
  linen_tools.close(actual, expected)
  assert not np.allclose(dropped, actual[0])


def test_number_of_parameters():
  encoder = ENCODER.clone(num_layers=2, positions="learned", max_len=10)
  params = linen_tools.random_params(encoder, jnp.zeros((B, S, D)))
  # Attention 4 D², MLP (2 D 16 + 16 + D), 2 norms; final norm, positions.
  block = 4 * D**2 + 2 * D * 16 + 16 + D + 2 * 2 * D
  expected = 2 * block + 2 * D + 10 * D
  assert sum(p.size for p in jax.tree.leaves(params)) == expected
  assert set(params["params"]) == {
    "posembed_input",
    "encoderblock_0",
    "encoderblock_1",
    "encoder_norm",
  }


def test_bad_lengths_and_positions_are_refused(inputs):
  def initialise(**fields):
    linen_tools.random_params(ENCODER.clone(**fields), inputs)

  with pytest.raises(ValueError, match="5 tokens is longer than max_len=4"):
    initialise(positions="learned", max_len=4)
  with pytest.raises(ValueError, match="needs max_len"):
    initialise(positions="learned")
  with pytest.raises(ValueError, match="got 'rotary'"):
    initialise(positions="rotary")
