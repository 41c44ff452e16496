"""The DNC against the paper's equations in numpy, and its behaviours."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from nam_jax import baselines
from tests import linen_tools
from tests.linen_tools import close
from tests.reference import dnc as reference

B, S, D = 2, 6, 5
SIZES = {"num_slots": 6, "slot_width": 4, "num_reads": 2}
MODEL = baselines.DNC(controller_features=7, **SIZES)
REAL = linen_tools.GAPS
MASK = jnp.array(REAL)


@pytest.fixture(scope="module")
def params(inputs):
  # Wider than initialised: gates and weightings far from uniform.
  return linen_tools.random_params(MODEL, inputs, scale=1.0)


@pytest.fixture(scope="module")
def apply():
  return linen_tools.compiled(MODEL.apply)


def test_outputs_and_every_state_field_equal_the_reference(
  params, inputs, apply
):
  outputs, state = apply(params, inputs)
  wide = jax.tree.map(lambda p: np.asarray(p, np.float64), params["params"])
  for b in range(B):
    expected, final = reference.run(
      wide, np.float64(inputs[b]), *SIZES.values()
    )
    close(outputs[b], expected)
    for field, value in state._asdict().items():
      np.testing.assert_allclose(
        value[b], final[field], rtol=1e-5, atol=1e-5, err_msg=field
      )


def test_token_by_token_equals_the_whole_sequence(params, inputs, apply):
  expected = apply(params, inputs)
  outputs, state = [], None
  for s in range(S):
    output, state = apply(params, inputs[:, s : s + 1], initial_state=state)
    outputs.append(output)
  close((np.concatenate(outputs, axis=1), state), expected)


def test_padded_tokens_change_nothing(params, inputs, apply):
  outputs, state = apply(params, inputs, mask=MASK)
  assert (outputs[~REAL] == 0).all()
  for b in range(B):
    alone, alone_state = apply(params, inputs[b : b + 1, REAL[b]])
    close(outputs[b, REAL[b]], alone[0])
    close(jax.tree.map(lambda x, b=b: x[b : b + 1], state), alone_state)


def test_cell_runs_under_flax_rnn(params, inputs, apply):
  cell = baselines.DNCCell(features=D, controller_features=7, **SIZES)
  rnn = nn.RNN(cell, return_carry=True)
  state, outputs = linen_tools.compiled(rnn.apply)(params, inputs)
  close((outputs, state), apply(params, inputs))


def test_weightings_stay_weightings(params, inputs, apply):
  _, state = apply(params, inputs)
  for weights in (state.read_weights, state.write_weights, state.precedence):
    assert (weights >= 0).all()
    assert (weights.sum(-1) <= 1 + 1e-5).all()
  assert (state.usage >= 0).all()
  assert (state.usage <= 1).all()


def test_gradients_are_finite_at_zero_inputs(params):
  @linen_tools.compiled
  def grad(params):
    def total(params):
      outputs, state = MODEL.apply(params, jnp.zeros((B, S, D)), mask=MASK)
      return jnp.sum(outputs**2) + jnp.sum(state.memory**2)

    return jax.grad(total)(params)

  for zero in (params, jax.tree.map(np.zeros_like, params)):
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(grad(zero)))


def test_bfloat16_controller_keeps_the_memory_in_float32(params, inputs, apply):
  model = MODEL.clone(dtype=jnp.bfloat16)
  outputs, state = linen_tools.compiled(model.apply)(params, inputs)
  assert outputs.dtype == jnp.bfloat16
  assert {x.dtype for x in state} == {jnp.dtype(jnp.float32)}
  expected, _ = apply(params, inputs)
  close(outputs.astype(jnp.float32), expected, tol=0.2)


def test_gradient_of_vmap_lowers_for_accelerators(params, inputs):
  def total(params, inputs):
    return jnp.sum(MODEL.apply(params, inputs)[0])

  models = jax.tree.map(lambda p: np.stack([p, p]), params)
  grads = jax.jit(jax.vmap(jax.grad(total), (0, None)))
  traced = grads.trace(models, inputs)
  for platform in ("cuda", "tpu"):
    assert traced.lower(lowering_platforms=(platform,))
