"""What blocks can be made of: batch norms, gated MLPs, merged tokens."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from nam_jax.layers import (
  merging,
  self_attention,
  transformer,
  transformer_block,
)
from nam_jax.layers.positions import sinusoids
from nam_jax.layers.transformer_block import BlockStyle
from tests import linen_tools

B, S, D = 2, 5, 8
REAL = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], bool)
MASK = jnp.array(REAL)
BATCH = BlockStyle("batch")
ATTENTION = functools.partial(self_attention.SelfAttention, num_heads=2)
ENCODER = transformer.TransformerEncoder(ATTENTION, num_layers=2, mlp_dim=3)


class Nothing(nn.Module):
  """An attention layer without effect."""

  def __call__(self, x, *, mask=None, train=False):
    return jnp.zeros_like(x)


def variables_of(module):
  """Random numbers, with positive variances."""
  variables = linen_tools.random_params(module, np.zeros((B, S, D), np.float32))
  stats = jax.tree.map(np.abs, variables.pop("batch_stats", {}))
  return {**variables, "batch_stats": stats}


def gelu(a):
  return a / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3)))


def dense(params, x):
  return x @ params["kernel"] + params["bias"]


def test_batch_norm_is_over_the_real_tokens_of_a_batch(inputs):
  block = transformer_block.TransformerBlock(Nothing, mlp_dim=3, style=BATCH)
  variables = variables_of(block)
  layers = jax.tree.map(np.float64, variables["params"])
  stats = jax.tree.map(np.float64, variables["batch_stats"]["BatchNorm_1"])
  x = np.float64(inputs)

  def expected(mean, variance):
    norm = (x - mean) / np.sqrt(variance + 1e-5)
    norm = norm * layers["BatchNorm_1"]["scale"] + layers["BatchNorm_1"]["bias"]
    hidden = gelu(dense(layers["MLP_0"]["Dense_0"], norm))
    return (x + dense(layers["MLP_0"]["Dense_1"], hidden))[REAL]

  @linen_tools.compiled
  def run(x):
    trained = block.apply(variables, x, MASK, True, mutable=["batch_stats"])
    return trained, block.apply(variables, x, MASK)

  mean, variance = x[REAL].mean(axis=0), x[REAL].var(axis=0)
  for padding in (0.0, np.nan, 1e30):
    padded = np.where(REAL[..., None], inputs, np.float32(padding))
    (y, changed), tested = run(padded)
    linen_tools.close(y[REAL], expected(mean, variance), 1e-4)
    linen_tools.close(tested[REAL], expected(stats["mean"], stats["var"]), 1e-4)
    after = changed["batch_stats"]["BatchNorm_1"]
    linen_tools.close(after["mean"], 0.9 * stats["mean"] + 0.1 * mean)
    linen_tools.close(after["var"], 0.9 * stats["var"] + 0.1 * variance)


def test_a_gated_mlp_by_hand(inputs):
  mlp = transformer_block.MLP(3, gated=True)
  params = linen_tools.random_params(mlp, inputs)
  layers = jax.tree.map(np.float64, params["params"])
  both = dense(layers["Dense_0"], np.float64(inputs))
  gate, hidden = both[..., :3], both[..., 3:]
  hidden = gate / (1 + np.exp(-gate)) * hidden
  expected = dense(layers["Dense_1"], hidden)
  linen_tools.close(linen_tools.compiled(mlp.apply)(params, inputs), expected)


def test_the_style_reaches_every_block():
  variables = variables_of(ENCODER.clone(style=BlockStyle("batch", True)))
  blocks = {"encoderblock_0", "encoderblock_1"}
  assert set(variables["batch_stats"]) == {*blocks, "encoder_norm"}
  for name in blocks:
    block = variables["params"][name]
    assert {"BatchNorm_0", "BatchNorm_1"} < set(block)
    assert block["MLP_0"]["Dense_0"]["kernel"].shape == (D, 6)
    assert block["MLP_0"]["Dense_1"]["kernel"].shape == (3, D)
  assert not variables_of(ENCODER)["batch_stats"]


def test_batch_norm_works_when_blocks_are_scanned_and_computed_again(inputs):
  def learn(encoder, variables):
    def loss(params, x):
      y, changed = encoder.apply(
        variables | {"params": params},
        x,
        mask=MASK,
        train=True,
        mutable=["batch_stats"],
      )
      return jnp.sum(jnp.where(MASK[..., None], y, 0) ** 3), changed

    run = linen_tools.compiled(jax.grad(loss, has_aux=True))
    gradient, changed = run(variables["params"], inputs)
    return {"params": gradient, **changed}

  def stacked(variables):
    def stack(tree):
      rest = dict(tree)
      layers = [rest.pop(f"encoderblock_{i}") for i in range(2)]
      rest["encoderblocks"] = jax.tree.map(lambda *x: np.stack(x), *layers)
      return rest

    return {kind: stack(tree) for kind, tree in variables.items()}

  encoder = ENCODER.clone(style=BATCH)
  variables = variables_of(encoder)
  again = encoder.clone(remat=True, scan=True)
  expected = stacked(learn(encoder, variables))
  linen_tools.close(learn(again, stacked(variables)), expected, 1e-4)
  jax.eval_shape(
    functools.partial(encoder.clone(remat=True).apply, mutable=True),
    variables,
    inputs,
    mask=REAL,
  )


def test_an_unknown_norm_is_refused():
  with pytest.raises(ValueError, match="norm='rms' is not one of layer, batch"):
    BlockStyle("rms")


@pytest.mark.parametrize("style", [BlockStyle(), BATCH], ids=lambda s: s.norm)
def test_merged_tokens_are_those_of_the_parts_one_after_another(inputs, style):
  encoder = ENCODER.clone(style=style, merge=(1, 3))
  variables = variables_of(encoder)

  def part(name):
    return {
      kind: tree[name] for kind, tree in variables.items() if name in tree
    }

  @linen_tools.compiled
  def run(x):
    whole = encoder.apply(variables, x, mask=MASK)
    block = transformer_block.TransformerBlock(
      ATTENTION, mlp_dim=3, style=style
    )
    norm = nn.LayerNorm() if style.norm == "layer" else nn.BatchNorm(True)
    x = x + sinusoids(jnp.arange(S, dtype=x.dtype)[None], D)
    x = block.apply(part("encoderblock_0"), x, MASK)
    x, mask = merging.MergeTokens(3).apply(part("merge_1"), x, MASK)
    x = block.apply(part("encoderblock_1"), x, mask)
    return whole, norm.apply(part("encoder_norm"), x)

  whole, parts = run(inputs)
  assert whole.shape == (B, 2, D)
  linen_tools.close(whole, parts)
  spoilt, _ = run(np.where(REAL[..., None], inputs, np.float32(np.nan)))
  linen_tools.close(spoilt, whole, 0)


def test_merged_tokens_are_not_read_one_by_one_or_in_a_scan(inputs):
  encoder = ENCODER.clone(merge=(1, 2))
  variables = variables_of(encoder)
  with pytest.raises(ValueError, match=r"merge=\(1, 2\): merged tokens cannot"):
    encoder.apply(variables, jnp.asarray(inputs), None, method="continue_from")
  with pytest.raises(ValueError, match=r"merge=\(1, 2\) needs scan=False"):
    encoder.clone(scan=True)
  with pytest.raises(ValueError, match="for each of 2 layers"):
    encoder.clone(merge=(2,))
