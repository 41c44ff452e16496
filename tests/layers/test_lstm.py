"""The LSTM layer: streaming, padding and both directions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from nam_jax.layers import lstm
from tests import linen_tools
from tests.linen_tools import close

B, S, D, F = 2, 6, 5, 4
ONE = lstm.LSTM(F)
BOTH = lstm.LSTM(F, bidirectional=True)
REAL = linen_tools.GAPS
MASK = jnp.array(REAL)


@pytest.fixture(scope="module")
def both():
  """Parameters of the bidirectional layer; those of `ONE` are its forward."""
  return linen_tools.random_params(BOTH, jnp.zeros((B, S, D)))


@pytest.fixture(scope="module")
def one(both):
  return {"params": both["params"]["forward"]}


def test_forget_gate_starts_open_and_the_others_neutral():
  init = linen_tools.compiled(ONE.init)
  one = init(jax.random.key(0), jnp.zeros((1, 1, D)))
  expected = np.repeat([0.0, 1.0, 0.0, 0.0], F)
  np.testing.assert_array_equal(one["params"]["bias"], expected)
  kernel = one["params"]["recurrent_kernel"]
  close(kernel[:, F : 2 * F].T @ kernel[:, F : 2 * F], np.eye(F))


def test_equals_flax_with_the_same_parameters(one, inputs):
  parts = {k: np.split(p, 4, axis=-1) for k, p in one["params"].items()}
  cell = {}
  for i, gate in enumerate("ifgo"):
    cell["i" + gate] = {"kernel": parts["input_kernel"][i]}
    cell["h" + gate] = {
      "kernel": parts["recurrent_kernel"][i],
      "bias": parts["bias"][i],
    }
  rnn = nn.RNN(nn.OptimizedLSTMCell(F))
  expected = linen_tools.compiled(rnn.apply)({"params": {"cell": cell}}, inputs)
  close(linen_tools.compiled(ONE.apply)(one, inputs)[0], expected)


def test_token_by_token_equals_the_whole_sequence(one, inputs):
  apply = linen_tools.compiled(ONE.apply)
  outputs, state = [], None
  for s in range(S):
    output, state = apply(one, inputs[:, s : s + 1], initial_state=state)
    outputs.append(output)
  close((np.concatenate(outputs, axis=1), state), apply(one, inputs))


def test_padded_tokens_change_nothing_in_both_directions(both, inputs):
  apply = linen_tools.compiled(BOTH.apply)
  outputs, states = apply(both, inputs, mask=MASK)
  assert (outputs[~REAL] == 0).all()
  for b in range(B):
    alone, alone_states = apply(both, inputs[b : b + 1, REAL[b]])
    close(outputs[b, REAL[b]], alone[0])
    close(jax.tree.map(lambda x, b=b: x[b : b + 1], states), alone_states)


def test_backward_direction_is_forward_on_the_flipped_sequence(both, inputs):
  outputs, (_, state) = linen_tools.compiled(BOTH.apply)(both, inputs)
  backward = {"params": both["params"]["backward"]}
  flipped, expected = linen_tools.compiled(ONE.apply)(backward, inputs[:, ::-1])
  close(outputs[..., F:], flipped[:, ::-1])
  close(state, expected)


def test_both_directions_start_from_their_states(both, inputs):
  apply = linen_tools.compiled(BOTH.apply)
  expected, (forward, backward) = apply(both, inputs)
  _, (middle, _) = apply(both, inputs[:, :2])
  _, (_, zero) = apply(both, inputs, mask=np.zeros((B, S), bool))
  outputs, states = apply(both, inputs[:, 2:], initial_state=(middle, zero))
  close(outputs, expected[:, 2:])
  close(states[0], forward)
  assert not np.allclose(states[1].cell, backward.cell)


def test_gradients_are_finite_at_zero_in_bfloat16(both):
  layer = BOTH.clone(dtype=jnp.bfloat16)

  @linen_tools.compiled
  def grad(params):
    def total(params):
      outputs, _ = layer.apply(params, jnp.zeros((B, S, D)), mask=MASK)
      return jnp.sum(outputs.astype(jnp.float32) ** 2)

    return jax.grad(total)(params)

  for g in jax.tree.leaves(grad(both)):
    assert g.dtype == jnp.float32
    assert np.isfinite(g).all()


def test_reverse_of_both_directions_is_refused(inputs):
  layer = lstm.LSTM(F, bidirectional=True, reverse=True)
  with pytest.raises(ValueError, match="bidirectional"):
    jax.eval_shape(layer.init, jax.random.key(0), inputs)
