"""Pooling, and BatchNorm between the pooled tokens and the head, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from nam_jax.layers import merging
from nam_jax.models.classifier import Classifier, TokenEncoder
from tests import linen_tools
from tests.agreement import Random, assert_agree

WIDTH = 6


class Same(nn.Module):
  """An encoder that leaves the tokens as they are."""

  @nn.compact
  def __call__(self, x, *, mask=None, train=False):
    return x


class Merge(nn.Module):
  """An encoder that merges three tokens into one."""

  @nn.compact
  def __call__(self, x, *, mask=None, train=False):
    return merging.MergeTokens(3, name="merge")(x, mask)[0]


def ids():
  return jnp.asarray(np.random.default_rng(0).integers(0, 20, (4, 7), np.int32))


def made(inputs, **fields):
  tokens = TokenEncoder(20, WIDTH, Same(), pool="MEAN")
  model = Classifier(tokens, (5,), 3, **fields)
  mask = jnp.ones(inputs.shape, bool)
  return model, mask, model.init(jax.random.key(0), inputs, mask)


def head(params, x):
  p = jax.tree.map(np.asarray, params)
  hidden = np.maximum(x @ p["mlp"]["kernel"] + p["mlp"]["bias"], 0)
  return hidden @ p["logits"]["kernel"] + p["logits"]["bias"]


def test_pool_norm_is_batch_norm_of_the_pooled_tokens():
  inputs = ids()
  model, mask, variables = made(inputs, pool_norm=True)
  rng, norm = Random(), variables["params"]["pool_norm"]
  norm["scale"], norm["bias"] = rng.normal(WIDTH), rng.normal(WIDTH)
  table = np.asarray(variables["params"]["tokens"]["embedding"]["embedding"])
  pooled = table[inputs].mean(axis=1)
  scale, bias = np.asarray(norm["scale"]), np.asarray(norm["bias"])

  def expected(mean, variance):
    x = (pooled - mean) / np.sqrt(variance + 1e-5) * scale + bias
    return head(variables["params"], x)

  mean, variance = pooled.mean(axis=0), pooled.var(axis=0)
  logits, changed = model.apply(
    variables, inputs, mask, train=True, mutable=["batch_stats"]
  )
  assert_agree(logits, expected(mean, variance), 1e-4)
  stats = changed["batch_stats"]["pool_norm"]
  assert_agree(stats["mean"], 0.1 * mean, 1e-5)
  assert_agree(stats["var"], 0.9 + 0.1 * variance, 1e-5)
  tested = model.apply(variables | changed, inputs, mask)
  assert_agree(tested, expected(0.1 * mean, 0.9 + 0.1 * variance), 1e-4)


def test_without_it_there_is_nothing_between_pool_and_head():
  inputs = ids()
  model, mask, variables = made(inputs)
  assert set(variables) == {"params"}
  assert set(variables["params"]) == {"tokens", "mlp", "logits"}
  table = np.asarray(variables["params"]["tokens"]["embedding"]["embedding"])
  pooled = table[inputs].mean(axis=1)
  expected = head(variables["params"], pooled)
  assert_agree(model.apply(variables, inputs, mask), expected, 1e-5)


def test_a_token_can_see_the_values_around_it():
  inputs = np.asarray(ids())
  mask = np.arange(7)[None] < np.array([7, 3, 1, 0])[:, None]
  tokens = TokenEncoder(
    20, WIDTH, Same(), pool="FLATTEN", embed_values=True, embed_window=5
  )
  variables = linen_tools.random_params(tokens, inputs, mask)
  layer = jax.tree.map(np.float64, variables["params"]["embedding"])
  values = np.pad(np.where(mask, 2 * inputs / 19 - 1, 0), ((0, 0), (2, 2)))
  windows = np.lib.stride_tricks.sliding_window_view(values, 5, axis=1)
  expected = (windows @ layer["kernel"] + layer["bias"]) * mask[..., None]
  found = tokens.apply(variables, jnp.asarray(inputs), jnp.asarray(mask))
  assert_agree(found, expected.reshape(4, -1), 1e-5)


@pytest.mark.parametrize(
  ("fields", "message"),
  [
    ({"embed_values": True, "embed_window": 4}, "4 is not an odd number"),
    ({"embed_window": 3}, "needs embed_values=True"),
  ],
)
def test_windows_are_checked(fields, message):
  with pytest.raises(ValueError, match=message):
    TokenEncoder(20, WIDTH, Same(), **fields)


def test_the_head_sees_how_two_sequences_interact():
  inputs = jnp.stack([ids(), ids()[::-1]], axis=1)
  model, mask, variables = made(inputs, interact=True)
  table = np.asarray(variables["params"]["tokens"]["embedding"]["embedding"])
  pooled = table[inputs].mean(axis=2)
  one, other = pooled[:, 0], pooled[:, 1]
  x = np.concatenate([one, other, one * other, one - other], axis=1)
  expected = head(variables["params"], x)
  assert_agree(model.apply(variables, inputs, mask), expected, 1e-5)


@pytest.mark.parametrize(
  ("pool", "causal"),
  [("MEAN", False), ("SUM", False), ("CLS", False), ("CLS", True)],
)
def test_merged_tokens_are_pooled(pool, causal):
  tokens = TokenEncoder(20, WIDTH, Merge(), pool=pool, causal=causal, merged=3)
  lengths, inputs = (7, 2, 4, 0), np.asarray(ids())
  mask = np.arange(7)[None] < np.array(lengths)[:, None]
  variables = linen_tools.random_params(tokens, inputs, mask)
  params = jax.tree.map(np.float64, variables["params"])
  layer = params["encoder"]["merge"]["Dense_0"]

  def pooled(row):
    """From the real tokens of one row."""
    if pool == "CLS":
      row = np.concatenate([row, params["cls"][0]][:: 1 if causal else -1])
    runs = [row[i : i + 3] for i in range(0, len(row), 3)]
    runs = [np.pad(run, ((0, 3 - len(run)), (0, 0))).ravel() for run in runs]
    y = np.stack(runs or [np.zeros(3 * WIDTH)]) @ layer["kernel"]
    y = y + layer["bias"] if runs else 0 * y  # no token, a mean of zero
    if pool == "CLS":
      return y[-1 if causal else 0]
    return y.mean(axis=0) if pool == "MEAN" else y.sum(axis=0)

  table = params["embedding"]["embedding"]
  expected = [
    pooled(table[row[:n]]) for row, n in zip(inputs, lengths, strict=True)
  ]
  actual = linen_tools.compiled(tokens.apply)(variables, inputs, mask)
  assert_agree(actual, np.stack(expected), 1e-5)


def test_pixels_are_embedded_by_their_brightness():
  inputs = ids()
  encoder = TokenEncoder(20, WIDTH, Same(), pool="MEAN", embed_values=True)
  mask = jnp.ones(inputs.shape, bool)
  variables = encoder.init(jax.random.key(0), inputs, mask)
  layer = variables["params"]["embedding"]
  layer["bias"] = Random().normal(WIDTH)
  values = 2 * np.asarray(inputs, np.float32)[..., None] / 19 - 1
  expected = values @ np.asarray(layer["kernel"]) + np.asarray(layer["bias"])
  pooled = encoder.apply(variables, inputs, mask)
  assert_agree(pooled, expected.mean(axis=1), 1e-5)
