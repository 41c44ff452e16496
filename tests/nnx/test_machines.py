"""LSAM and the Turing machine in nnx: those of linen with other parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import nam_jax
import nam_jax.nnx
from nam_jax.ops import tape
from tests import linen_tools
from tests.agreement import assert_agree

B, S, D, E = 2, 6, 8, 5
MACHINES = {
  "lsam": (
    lambda **rngs: nam_jax.nnx.LSAM(D, 12, 2, bidirectional=True, **rngs),
    nam_jax.LSAM(12, 2, bidirectional=True),
    {},
  ),
  "nam_tm": (
    lambda **rngs: nam_jax.nnx.NAMTuringMachine(D, 2, **rngs),
    nam_jax.NAMTuringMachine(2),
    {},
  ),
  "steered": (
    lambda **rngs: nam_jax.nnx.NAMTuringMachine(
      D,
      2,
      control_features=E,
      transitions=(tape.LEFT, tape.RIGHT),
      right_bias=(1.0, 2.0),
      separate_erase=True,
      **rngs,
    ),
    nam_jax.NAMTuringMachine(
      2,
      transitions=(tape.LEFT, tape.RIGHT),
      right_bias=(1.0, 2.0),
      separate_erase=True,
    ),
    {"control": linen_tools.normal(B, S, E)},
  ),
}


@pytest.mark.parametrize("name", MACHINES)
def test_outputs_states_and_gradients_are_those_of_linen(name, inputs):
  make, linen, others = MACHINES[name]
  params = linen_tools.random_params(linen, inputs, **others)
  layer = make(rngs=nnx.Rngs(0))
  graph, state = nnx.split(layer, nnx.Param)
  shapes = jax.tree.map(np.shape, nnx.to_pure_dict(state))
  assert shapes == jax.tree.map(np.shape, params["params"])
  nnx.replace_by_pure_dict(state, params["params"])
  nnx.update(layer, state)
  assert graph == nnx.graphdef(layer)

  def loss(run, x, others):
    outputs, state = run(x, **others, mask=jnp.array(linen_tools.GAPS))
    total = sum(jnp.sum(jnp.sin(a)) for a in jax.tree.leaves(state))
    return jnp.sum(outputs**2) + total, (outputs, state)

  @nnx.jit
  def actual(layer, x, others):
    return nnx.grad(loss, has_aux=True)(layer, x, others)

  @jax.jit
  def expected(params, x, others):
    def total(params):
      return loss(lambda *x, **o: linen.apply(params, *x, **o), x, others)

    return jax.grad(total, has_aux=True)(params)

  gradients, results = actual(layer, inputs, others)
  expected_gradients, expected_results = expected(params, inputs, others)
  assert_agree(results, expected_results, 1e-6)
  assert_agree(nnx.to_pure_dict(gradients), expected_gradients["params"], 1e-6)


def test_bad_settings_are_refused():
  rngs = nnx.Rngs(0)
  with pytest.raises(ValueError, match="num_heads=3 is odd"):
    nam_jax.nnx.LSAM(8, 9, 3, bidirectional=True, rngs=rngs)
  with pytest.raises(ValueError, match="needs RIGHT in transitions"):
    nam_jax.nnx.NAMTuringMachine(
      8, 2, transitions=(tape.LEFT,), right_bias=(0.0, 1.0), rngs=rngs
    )
