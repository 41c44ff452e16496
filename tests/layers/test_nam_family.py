"""NAMAttention in all modes and presets, against its twin."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.layers import decay
from nam_jax.layers.nam_attention import NAMAttention
from nam_jax.layers.nam_heads import NAMState
from nam_jax.layers.presets import PRESETS
from tests import linen_tools
from tests.agreement import assert_agree
from tests.reference import nam_attention as reference

B, S, D, H = 2, 9, 6, 2
EVERYTHING = {
  "mode": "erase",
  "bidirectional": True,
  "max_erase": 1.5,
  "decay": "channel",
  "decay_from": "learned",
  "convolution": 3,
  "output_norm": True,
  "use_bias": True,
}
FIELDS = {
  "paper": {"use_bias": True},
  "causal": {"mode": "causal", "use_bias": True},
  **PRESETS,
  "negative": {**PRESETS["deltanet"], "max_erase": 2},
  "everything": EVERYTHING,
  "everything twice": {**EVERYTHING, "num_writes": 2},
  "three writes": {**PRESETS["gated_deltanet2"], "num_writes": 3},
}
LAYERS = {name: NAMAttention(H, **fields) for name, fields in FIELDS.items()}
STREAMS = [
  name
  for name, layer in LAYERS.items()
  if layer.mode != "bidirectional" and not layer.bidirectional
]
# The rows start, pause and end at different places.
MASK = np.array(
  [[1, 1, 0, 1, 1, 1, 1, 0, 1], [0, 0, 1, 1, 0, 0, 1, 1, 0]], bool
)


@functools.cache
def params_of(name):
  return linen_tools.random_params(LAYERS[name], jnp.zeros((B, 3, D)))


@functools.cache
def gradient(name):
  """(outputs, gradients of their squares by parameters and tokens)."""

  def total(variables, x, mask):
    y = LAYERS[name].apply(variables, x, mask=mask)
    return jnp.sum(jnp.where(mask[..., None], y, 0) ** 2), y

  def run(variables, x, mask):
    grads, y = jax.grad(total, (0, 1), has_aux=True)(variables, x, mask)
    return y, grads

  return linen_tools.compiled(run)


def twin(name, variables, x):
  return reference.outputs(LAYERS[name], variables["params"], x, MASK)


@pytest.mark.parametrize("name", LAYERS)
def test_equals_the_twin(name):
  x, variables = linen_tools.normal(B, S, D), params_of(name)
  y, grads = gradient(name)(variables, x, MASK)
  assert_agree(y[MASK], twin(name, variables, x)[MASK], 1e-5)
  rng = np.random.default_rng(1)
  step = jax.tree.map(lambda p: rng.normal(size=p.shape), (variables, x))

  def total(size):
    moved = jax.tree.map(lambda p, d: p + size * d, (variables, x), step)
    return (twin(name, *moved)[MASK] ** 2).sum()

  expected = (total(1e-6) - total(-1e-6)) / 2e-6
  products = jax.tree.map(lambda g, d: (g * d).sum(), grads, step)
  actual = sum(jax.tree.leaves(products))
  np.testing.assert_allclose(actual, expected, rtol=1e-4)


@pytest.mark.parametrize("name", LAYERS)
def test_padding_can_hold_anything(name):
  x, variables = linen_tools.normal(B, S, D), params_of(name)
  expected = gradient(name)(variables, x, MASK)
  spoilt = np.where(MASK[..., None], x, np.nan)
  y, grads = gradient(name)(variables, spoilt, MASK)
  assert_agree(y[MASK], expected[0][MASK], 0)
  assert_agree(grads, expected[1], 0)
  assert not grads[1][~MASK].any()


@pytest.mark.parametrize("name", STREAMS)
def test_token_by_token_equals_the_twin(name):
  x, variables = linen_tools.normal(B, S, D), params_of(name)

  def run(x, state, mask):
    return LAYERS[name].apply(
      variables, x, state, mask=mask, method="continue_from"
    )

  step, outputs = linen_tools.compiled(run), []
  shapes = jax.eval_shape(run, x[:, :1], None, MASK[:, :1])[1]
  state = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), shapes)
  for t in range(S):
    y, state = step(x[:, t : t + 1], state, MASK[:, t : t + 1])
    outputs.append(y)
  y = np.concatenate(outputs, axis=1)
  assert_agree(y[MASK], twin(name, variables, x)[MASK], 1e-5)
  assert isinstance(state, NAMState) == bool(LAYERS[name].convolution)


def test_a_sequence_in_two_parts_without_a_mask():
  name, x = "gated_deltanet2", linen_tools.normal(B, S, D)
  variables = params_of(name)

  def run(x, state=None):
    return LAYERS[name].apply(variables, x, state, method="continue_from")

  run = linen_tools.compiled(run)
  first, state = run(x[:, :2])  # shorter than the convolution
  second, _ = run(x[:, 2:], state)
  y = np.concatenate([first, second], axis=1)
  expected = reference.outputs(LAYERS[name], variables["params"], x)
  assert_agree(y, expected, 1e-5)


def test_close_in_bfloat16():
  name, x = "everything", linen_tools.normal(B, S, D)
  narrow = LAYERS[name].clone(dtype=jnp.bfloat16)
  run = linen_tools.compiled(narrow.apply)
  y = run(params_of(name), x, mask=MASK)
  assert y.dtype == jnp.bfloat16
  expected = twin(name, params_of(name), x)
  assert_agree(np.float32(y)[MASK], expected[MASK], 0.05)


def test_decays_start_at_their_time_scales():
  layer = NAMAttention(4, decay="channel", mode="causal", bidirectional=True)
  p = linen_tools.compiled(layer.init)(jax.random.key(0), jnp.zeros((1, 1, 32)))
  group = p["params"]["decay_gate"]
  rates = reference.softplus(np.float64(group["bias"]))
  assert not group["kernel"].any()
  assert not group["scale"].any()
  expected = np.minimum(10**-2.5 * (np.arange(8) + 0.5), 0.5)
  np.testing.assert_allclose(rates[0], expected, rtol=1e-4)
  np.testing.assert_array_equal(rates[:2], rates[2:])  # one half each way
  assert decay.time_scales(8).min() > 0.001
  assert decay.time_scales(8).max() < 0.1
  assert decay.time_scales(8, 64).max() == 0.5
