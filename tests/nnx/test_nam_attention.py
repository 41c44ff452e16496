"""NAMAttention as an nnx module: the linen module with other parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import nam_jax.nnx
from nam_jax.layers.presets import PRESETS
from tests import linen_tools
from tests.agreement import assert_agree

B, S, D, H = 2, 6, 8, 2
FIELDS = {
  "paper": {},
  "both_ways": {"mode": "erase", "bidirectional": True, "use_bias": True},
  **PRESETS,
}


def make(name, **options):
  fields = {**FIELDS[name], **options}
  return nam_jax.nnx.NAMAttention(D, H, **fields, rngs=nnx.Rngs(0))


def params_of(layer):
  return {"params": nnx.to_pure_dict(nnx.state(layer, nnx.Param))}


@pytest.mark.parametrize("name", FIELDS)
def test_parameters_are_those_of_linen(name, inputs):
  linen = nam_jax.NAMAttention(H, **FIELDS[name])
  shapes = jax.eval_shape(linen.init, jax.random.key(0), inputs)
  layer = nnx.eval_shape(lambda: make(name))
  assert jax.tree.map(np.shape, params_of(layer)) == jax.tree.map(
    np.shape, shapes
  )


@pytest.mark.parametrize("name", ["paper", "kda"])
def test_outputs_are_those_of_linen(name, inputs):
  layer = make(name)
  linen = nam_jax.NAMAttention(H, **FIELDS[name])
  mask = linen_tools.GAPS
  run = nnx.jit(lambda layer, x, mask: layer(x, mask=mask))
  y = run(layer, inputs, mask)
  expected = jax.jit(linen.apply)(params_of(layer), inputs, mask=mask)
  assert_agree(y, expected, 1e-6)


def test_continues_and_trains(inputs):
  layer = make("gated_deltanet2")

  @nnx.jit
  def run(layer, x, state):
    return layer.continue_from(x, state)

  whole, _ = run(layer, inputs, None)
  first, state = run(layer, inputs[:, :2], None)
  second, _ = run(layer, inputs[:, 2:], state)
  assert_agree(np.concatenate([first, second], axis=1), whole, 1e-5)

  gradient = nnx.jit(nnx.grad(lambda layer, x: (layer(x) ** 2).sum()))
  leaves = jax.tree.leaves(gradient(layer, inputs))
  assert all(np.isfinite(g).all() and g.any() for g in leaves)


def test_dropout_follows_train_and_eval(inputs):
  layer = make("paper", dropout_rate=0.5)
  run = nnx.jit(lambda layer, x: layer(x))
  assert np.abs(run(layer, inputs) - run(layer, inputs)).max() > 1e-3
  layer.eval()
  assert_agree(run(layer, inputs), run(make("paper"), inputs), 1e-6)


def test_bad_settings_are_refused():
  with pytest.raises(ValueError, match=r"mode must be one of .* got 'past'"):
    make("paper", mode="past")
  with pytest.raises(ValueError, match="no memory to continue from"):
    make("both_ways").continue_from(jnp.zeros((B, S, D)), None)
