"""The NAM Turing machine layer: numpy twin, tapes, streaming, custom rules."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.layers.nam_tm import NAMTuringMachine
from nam_jax.ops import tape
from tests import linen_tools
from tests.agreement import Random, assert_agree
from tests.reference import nam_tm as reference


def far_right(heads, found):
  return jnp.roll(heads, 4, -1)


NO_JUMP = (tape.LEFT, tape.RIGHT, tape.NO_OP)
OWN = (*tape.TRANSITIONS, tape.Transition("far right", far_right))


def made(x, **fields):
  layer = NAMTuringMachine(num_heads=2, **fields)
  return layer, linen_tools.random_params(layer, x)


def watched(layer, variables, x, **options):
  """Outputs, tape, and the heads that were sown."""

  @linen_tools.compiled
  def run(variables, x):
    return layer.apply(variables, x, **options, mutable="intermediates")

  result, sown = run(variables, x)
  return *result, sown["intermediates"]["heads"][0]


@pytest.mark.parametrize("jump", [True, False])
@pytest.mark.parametrize("normalized", [True, False])
def test_equals_the_numpy_twin(jump, normalized):
  x = Random().normal(1, 8, 6)
  layer, variables = made(
    x,
    transitions=tape.TRANSITIONS if jump else NO_JUMP,
    normalize_heads=normalized,
  )
  outputs, final, heads = watched(layer, variables, x, tape_length=5)
  p = jax.tree.map(lambda a: np.asarray(a, np.float64), variables["params"])

  def project(name):
    kernel, bias = p[name]["kernel"], p[name]["bias"]
    return np.tensordot(np.asarray(x[0], np.float64), kernel, 1) + bias

  def unit(a):
    return a / np.linalg.norm(a, axis=-1, keepdims=True)

  value = project("value")
  key = unit(project("key")) if jump else value[..., :0]
  query = unit(project("query")) if jump else value[..., :0]
  gate = 1 / (1 + np.exp(-project("gate")))
  action = np.exp(project("action"))
  action = action / action.sum(-1, keepdims=True)  # [s 2 h a]
  expected = 0
  for i in range(2):
    p_r, p_w = gate[:, i, 0], gate[:, i, 1]
    controls = (value[:, i], key[:, i], query[:, i], p_r, p_w, p_w)
    start = np.eye(5)[0]
    blank = (np.zeros((3, 5)), np.zeros((key.shape[-1], 5)), [start, start])
    read, last, positions = reference.sequence(
      (*controls, action[:, :, i]), blank, normalized
    )
    expected = expected + read @ p["out"]["kernel"][i]
    assert_agree(final.values[0, i], last[0], 1e-4)
    assert_agree(heads[0, :, :, i], positions, 1e-4)
  assert_agree(outputs[0], expected, 1e-4)


def test_no_parameter_depends_on_the_length_of_the_tape():
  x = Random().normal(2, 6, 8)
  layer, variables = made(x)
  short, long = (
    jax.eval_shape(lambda n=n: layer.apply(variables, x, tape_length=n))[1]
    for n in (8, 100)
  )
  assert short.values.shape[-1] == 8
  assert long.values.shape[-1] == 100


def test_token_by_token_equals_the_whole_sequence():
  x = Random().normal(2, 7, 8)
  layer, variables = made(x, separate_erase=True)
  apply = linen_tools.compiled(layer.apply)
  whole, final = apply(variables, x)
  state = tape.rewind(jax.tree.map(jnp.zeros_like, final))
  outputs = []
  for t in range(7):
    output, state = apply(variables, x[:, t : t + 1], initial_tape=state)
    outputs.append(output)
  assert_agree(np.concatenate(outputs, 1), whole, 1e-5)
  assert_agree(state, final, 1e-5)


def test_padding_never_changes_a_real_output():
  x = Random().normal(2, 7, 8)
  layer, variables = made(x)
  apply = linen_tools.compiled(layer.apply)
  outputs, final = apply(variables, x)
  pad = ((0, 0), (2, 5))
  padded = np.pad(x, (*pad, (0, 0)), constant_values=3.0)
  mask = np.pad(np.ones((2, 7), bool), pad)
  longer, same = apply(variables, padded, mask=mask)
  assert_agree(longer[:, 2:9], outputs, 1e-5)
  assert_agree(same, final, 1e-5)
  assert not longer[~mask].any()


@pytest.mark.parametrize("transitions", [NO_JUMP, OWN], ids=["fewer", "own"])
def test_transitions_can_be_left_out_and_added(transitions):
  x = Random().normal(2, 6, 8)
  layer, variables = made(x, transitions=transitions)
  assert ("key" in variables["params"]) == (transitions is OWN)

  def loss(variables):
    return jnp.sum(layer.apply(variables, x)[0] ** 2)

  grads = linen_tools.compiled(jax.grad(loss))(variables)["params"]
  assert grads["action"]["kernel"].shape[-1] == len(transitions)
  assert np.abs(grads["action"]["kernel"]).min(axis=(0, 1, 2)).all()


def test_controls_come_from_the_controller_and_values_from_the_tokens():
  rng = Random()
  x, control = rng.normal(2, 6, 8), rng.normal(2, 6, 5)
  layer = NAMTuringMachine(num_heads=2)
  variables = jax.eval_shape(layer.init, jax.random.key(0), x, control=control)
  kernels = {n: p["kernel"].shape[0] for n, p in variables["params"].items()}
  assert kernels == {
    "value": 8,
    "key": 8,
    "query": 5,
    "action": 5,
    "gate": 5,
    "out": 2,
  }


def test_heads_stay_unit_vectors_when_normalised():
  x = 3 * Random().normal(2, 30, 8)
  layer, variables = made(x)
  _, _, heads = watched(layer, variables, x)
  lengths = np.linalg.norm(heads, axis=-1)
  np.testing.assert_allclose(lengths, 1, atol=1e-5)


@pytest.mark.parametrize(
  ("fields", "message"),
  [
    ({"num_heads": 3}, "num_heads=3 does not divide tape_dim=8"),
    ({"num_heads": 2, "transitions": ()}, "at least one way to move"),
  ],
)
def test_bad_fields_are_refused(fields, message):
  with pytest.raises(ValueError, match=message):
    NAMTuringMachine(**fields).init(jax.random.key(0), jnp.zeros((1, 2, 8)))


def test_right_bias_sends_untrained_heads_to_the_right():
  x = Random().normal(1, 4, 6)
  layer = NAMTuringMachine(num_heads=2, right_bias=(0.0, 50.0))
  variables = linen_tools.compiled(layer.init)(jax.random.key(0), x)
  _, _, heads = watched(layer, variables, x, tape_length=5)
  read, write = np.moveaxis(heads[0], 1, 0)  # [s h n]
  cells = np.broadcast_to(np.eye(5)[:4, None], (4, 2, 5))
  np.testing.assert_allclose(write, cells, atol=1e-6)
  assert np.abs(read - write).max() > 0.1


def test_sharper_heads_need_unit_heads_and_a_power_of_at_least_1():
  with pytest.raises(ValueError, match="sharpen must be at least 1, got"):
    NAMTuringMachine(2, sharpen=0.5)
  with pytest.raises(ValueError, match="sharpen needs normalize_heads=True"):
    NAMTuringMachine(2, sharpen=1.5, normalize_heads=False)


def test_right_bias_without_right_is_an_error():
  with pytest.raises(ValueError, match=r"right_bias=\(0.0, 1.0\) needs RIGHT"):
    NAMTuringMachine(
      2, transitions=(tape.LEFT, tape.NO_OP), right_bias=(0.0, 1.0)
    )
