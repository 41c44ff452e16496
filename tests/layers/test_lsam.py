"""LSAM layers: the numpy twin, directions, streaming, flax's RNN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from nam_jax.layers.lsam import LSAM, LSAMCell
from nam_jax.ops.lsam import LSAMState
from tests import linen_tools
from tests.agreement import Random, assert_agree
from tests.reference import lsam as reference


def parameters(variables, direction):
  p = jax.tree.map(
    lambda a: np.asarray(a, np.float64), variables["params"][direction]
  )
  return p["input"], p["bias"], p["recurrent"]


def test_equals_the_numpy_twin_in_both_directions():
  rng = Random()
  x = rng.normal(2, 6, 5)
  layer = LSAM(features=8, num_heads=4, bidirectional=True)
  variables = linen_tools.random_params(layer, x)
  start = LSAMState(rng.normal(2, 4, 2, 2), rng.normal(2, 4, 2))
  outputs, state = linen_tools.compiled(layer.apply)(
    variables, x, initial_state=start
  )
  for i in range(2):
    for j, name in enumerate(("forward", "backward")):
      heads = slice(2 * j, 2 * j + 2)
      tokens = np.asarray(x[i], np.float64)
      tokens = tokens[::-1] if name == "backward" else tokens
      hidden, M, last = reference.sequence(
        tokens,
        *parameters(variables, name),
        np.asarray(start.memory[i, heads], np.float64),
        np.asarray(start.hidden[i, heads], np.float64),
      )
      hidden = hidden[::-1] if name == "backward" else hidden
      assert_agree(outputs[i, :, 4 * j : 4 * j + 4], hidden.reshape(6, 4), 1e-5)
      assert_agree(state.memory[i, heads], M, 1e-5)
      assert_agree(state.hidden[i, heads], last, 1e-5)


def test_token_by_token_equals_the_whole_sequence():
  x = Random().normal(2, 7, 5)
  layer = LSAM(features=6, num_heads=2)
  variables = linen_tools.random_params(layer, x)
  apply = linen_tools.compiled(layer.apply)
  whole, final = apply(variables, x)
  state, outputs = jax.tree.map(np.zeros_like, final), []
  for t in range(7):
    output, state = apply(variables, x[:, t : t + 1], initial_state=state)
    outputs.append(output)
  assert_agree(np.concatenate(outputs, 1), whole, 1e-5)
  assert_agree(state, final, 1e-5)


def test_the_cell_runs_in_flax_rnn_with_the_same_parameters():
  x = Random().normal(2, 7, 5)
  rnn = nn.RNN(LSAMCell(features=6, num_heads=2), return_carry=True)
  variables = linen_tools.random_params(rnn, x)
  state, outputs = linen_tools.compiled(rnn.apply)(variables, x)
  renamed = {"params": {"forward": variables["params"]["cell"]}}
  layer = LSAM(features=6, num_heads=2)
  expected = linen_tools.compiled(layer.apply)(renamed, x)
  assert_agree((outputs, state), expected, 1e-5)


def test_padding_on_either_side_never_changes_a_real_output():
  x = Random().normal(2, 7, 5)
  layer = LSAM(features=8, num_heads=2, bidirectional=True)
  variables = linen_tools.random_params(layer, x)
  apply = linen_tools.compiled(layer.apply)
  outputs, state = apply(variables, x)
  pad = ((0, 0), (3, 4))
  padded = np.pad(x, (*pad, (0, 0)), constant_values=2.0)
  mask = np.pad(np.ones((2, 7), bool), pad)
  longer, same = apply(variables, padded, mask=mask)
  assert_agree(longer[:, 3:10], outputs, 1e-5)
  assert_agree(same, state, 1e-5)
  assert not longer[~mask].any()


def test_a_decoder_starts_from_the_memory_of_an_encoder():
  x = Random().normal(2, 7, 8)
  encoder = LSAM(features=8, num_heads=2, bidirectional=True)
  decoder = LSAM(features=8, num_heads=2)
  encoding = linen_tools.random_params(encoder, x)
  decoding = linen_tools.random_params(decoder, x)

  @linen_tools.compiled
  def decoded(x):
    _, state = encoder.apply(encoding, x)
    start = state._replace(hidden=jnp.zeros_like(state.hidden))
    with_memory, _ = decoder.apply(decoding, x, initial_state=start)
    return with_memory, decoder.apply(decoding, x)[0]

  with_memory, without = decoded(x)
  assert np.abs(with_memory - without).max() > 1e-3


@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda: LSAM(8, 3), "num_heads=3 does not divide features=8"),
    (lambda: LSAMCell(8, 0), "num_heads=0 does not divide features=8"),
    (lambda: LSAM(9, 3, bidirectional=True), "num_heads=3 is odd"),
  ],
)
def test_bad_head_counts_are_refused(make, message):
  with pytest.raises(ValueError, match=message):
    make()
