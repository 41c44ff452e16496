"""LSAM and the Turing machine as nnx modules: linen's, parameters apart."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import nam_jax.nnx
from tests import linen_tools
from tests.agreement import assert_agree

B, S, D, E = 2, 6, 8, 5
LSAM = {"features": 8, "num_heads": 4, "bidirectional": True}
MACHINE = {"num_heads": 2, "separate_erase": True, "right_bias": (0.0, 1.0)}
CASES = {
  "lsam": (
    nam_jax.LSAM(**LSAM),
    lambda: nam_jax.nnx.LSAM(D, **LSAM, rngs=nnx.Rngs(0)),
  ),
  "nam_tm": (
    nam_jax.NAMTuringMachine(**MACHINE),
    lambda: nam_jax.nnx.NAMTuringMachine(
      D, **MACHINE, control_features=E, rngs=nnx.Rngs(0)
    ),
  ),
}


def pure(layer):
  return nnx.to_pure_dict(nnx.state(layer, nnx.Param))


def loss(name, layer, x):
  """Of outputs and state, in two pieces with gaps; the second continues."""
  mask = jnp.asarray(linen_tools.GAPS)
  control = jnp.asarray(linen_tools.normal(B, S, E))
  outputs, state = [], None
  for piece in (slice(0, 3), slice(3, S)):
    if name == "lsam":
      options = {"initial_state": state}
    else:
      options = {"initial_tape": state, "control": control[:, piece]}
      options["tape_length"] = 4
    y, state = layer(x[:, piece], mask=mask[:, piece], **options)
    outputs.append(y)
  total = sum(jnp.sum(a**2) for a in jax.tree.leaves((outputs, state)))
  return total, (outputs, state)


@pytest.mark.parametrize("name", CASES)
def test_parameters_and_results_are_those_of_linen(name, inputs):
  linen, make = CASES[name]

  def linen_loss(params, x):
    return loss(name, linen.bind({"params": params}), x)

  def nnx_loss(layer, x):
    return loss(name, layer, x)

  with_gradients = {"argnums": (0, 1), "has_aux": True}
  options = {"control": linen_tools.normal(B, S, E)} if name == "nam_tm" else {}
  params = linen_tools.random_params(linen, inputs, **options)["params"]
  run = jax.jit(jax.value_and_grad(linen_loss, **with_gradients))
  expected = run(params, inputs)

  layer = nnx.eval_shape(make)
  assert jax.tree.map(np.shape, pure(layer)) == jax.tree.map(np.shape, params)
  nnx.update(layer, jax.tree.map(jnp.asarray, params))
  run = nnx.jit(nnx.value_and_grad(nnx_loss, **with_gradients))
  results, (to_layer, to_x) = run(layer, inputs)
  actual = (results, (pure(to_layer), to_x))
  assert jax.tree.structure(actual) == jax.tree.structure(expected)
  assert_agree(actual, expected, 1e-6)
  assert all(np.any(leaf) for leaf in jax.tree.leaves(expected))


def test_heads_are_sown_on_request(inputs):
  @nnx.capture(nnx.Intermediate)
  def run(layer, x):
    return layer(x, tape_length=4, sow_heads=True)

  def heads(x):
    layer = nam_jax.nnx.NAMTuringMachine(D, 2, rngs=nnx.Rngs(0))
    return nnx.to_pure_dict(run(layer, x)[1])["heads"]

  (found,) = jax.eval_shape(heads, inputs)
  assert found.shape == (B, S, 2, 2, 4)


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (
      lambda rngs: nam_jax.nnx.LSAM(D, 9, 3, bidirectional=True, rngs=rngs),
      "num_heads=3 is odd",
    ),
    (
      lambda rngs: nam_jax.nnx.NAMTuringMachine(D, 3, rngs=rngs),
      "num_heads=3 does not divide tape_dim=8",
    ),
    (
      lambda rngs: nam_jax.nnx.NAMTuringMachine(
        D, 2, transitions=(), rngs=rngs
      ),
      "at least one way to move",
    ),
  ],
)
def test_bad_settings_are_refused(make, message):
  with pytest.raises(ValueError, match=message):
    make(nnx.Rngs(0))
