"""The tape recurrence against its plain scan and the numpy twin."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks import plain
from nam_jax.ops import tape
from tests import linen_tools
from tests.agreement import Random, assert_agree, in_float64
from tests.reference import nam_tm as reference

SKIP = tape.Transition("skip", lambda heads, found: jnp.roll(heads, 3, -1))
RULES = {
  "paper": tape.TRANSITIONS,
  "no_jump": (tape.LEFT, tape.RIGHT, tape.NO_OP),
  "own_rule": (*tape.TRANSITIONS, SKIP),
}


def _softmax(x):
  x = np.exp(x)
  return jnp.asarray(x / x.sum(-1, keepdims=True))


def operands(rules, b=2, s=9, h=3, v=4, k=5, n=7, seed=0):
  rng = Random(seed)
  normal = rng.normal
  if not any(rule.uses_found for rule in rules):
    k = 0
  controls = tape.Controls(
    value=normal(b, s, h, v),
    key=rng.unit(b, s, h, k),
    query=rng.unit(b, s, h, k),
    p_r=rng.uniform(b, s, h),
    p_w=rng.uniform(b, s, h),
    p_e=rng.uniform(b, s, h),
    actions=_softmax(2 * np.asarray(normal(2, b, s, h, len(rules)))),
  )
  start = tape.Tape(
    normal(b, h, v, n), normal(b, h, k, n), rng.unit(2, b, h, n)
  )
  return controls, start


def total(scan, controls, start):
  outputs, end, heads = scan(controls, start)
  parts = (outputs, end.values, end.keys, end.heads, heads)
  loss = sum(jnp.sum(jnp.sin((i + 1) * p)) for i, p in enumerate(parts))
  return loss, parts


@pytest.mark.parametrize(
  ("rules", "normalize_heads", "sharpen", "masked", "s"),
  [
    ("paper", True, 1.0, False, 37),
    ("paper", False, 1.0, True, 9),
    ("no_jump", True, 1.0, True, 9),
    ("own_rule", True, 1.0, False, 9),
    ("paper", True, 1.5, True, 9),
  ],
)
def test_equals_the_plain_scan(rules, normalize_heads, sharpen, masked, s):
  args = operands(RULES[rules], s=s)
  options = {
    "transitions": RULES[rules],
    "normalize_heads": normalize_heads,
    "sharpen": sharpen,
    "mask": Random(1).mask(2, s) if masked else None,
  }
  results = []
  for module in (tape, plain):
    scan = functools.partial(module.tape_scan, **options)
    run = jax.value_and_grad(functools.partial(total, scan), (0, 1), True)
    results.append(linen_tools.compiled(run)(*args))
  assert_agree(*results, tolerance=1e-4)


def test_a_spike_costs_the_tokens_before_it_no_digits():
  controls, start = operands(tape.TRANSITIONS, s=39)

  def gradients(module):
    def loss(*args):
      outputs, *_ = module.tape_scan(*args, transitions=tape.TRANSITIONS)
      return jnp.sum(jnp.sin(outputs[:, :20]))

    return linen_tools.compiled(jax.grad(loss, (0, 1)))

  fast, slow = gradients(tape), gradients(plain)
  for size in (1e4, 1e6):
    value = controls.value.at[:, 20].multiply(size)
    args = (controls._replace(value=value), start)
    actual = fast(*args)
    with jax.enable_x64(True):
      expected = slow(*in_float64(args))
    assert_agree(actual, expected, 1e-5)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("rules", ["paper", "no_jump"])
def test_equals_the_numpy_twin(rules, normalized):
  rules = RULES[rules]
  controls, start = operands(rules)
  outputs, end, heads = jax.device_get(
    tape.tape_scan(
      controls, start, transitions=rules, normalize_heads=normalized
    )
  )
  for i in range(2):
    for j in range(3):
      *others, actions = (np.asarray(a, np.float64) for a in controls)
      tokens = [a[i, :, j] for a in others]
      tokens.append(np.moveaxis(actions[:, i, :, j], 1, 0))
      T, K, H = (np.asarray(a, np.float64) for a in start)
      one = (T[i, j], K[i, j], H[:, i, j])
      expected, last, positions = reference.sequence(tokens, one, normalized)
      close = functools.partial(
        np.testing.assert_allclose, atol=1e-4, rtol=1e-4
      )
      close(outputs[i, :, j], expected)
      close(end.values[i, j], last[0])
      close(end.keys[i, j], last[1])
      close(end.heads[:, i, j], np.array(last[2]))
      close(heads[i, :, :, j], positions)


def one_action(index, s, count=4):
  """Controls of a machine that writes 1, 2, 3 ... and always acts the same."""
  shape = (1, s, 1)
  return tape.Controls(
    value=jnp.arange(1.0, s + 1).reshape(1, s, 1, 1),
    key=jnp.ones((1, s, 1, 1)),
    query=jnp.ones((1, s, 1, 1)),
    p_r=jnp.ones(shape),
    p_w=jnp.ones(shape),
    p_e=jnp.ones(shape),
    actions=jnp.broadcast_to(jax.nn.one_hot(index, count), (2, *shape, count)),
  )


def test_moving_right_writes_one_cell_after_the_other():
  start = tape.blank_tape(1, 1, 1, 1, 5, jnp.float32)
  outputs, end, heads = tape.tape_scan(one_action(1, 3), start)
  np.testing.assert_allclose(end.values[0, 0, 0], [1, 2, 3, 0, 0], atol=1e-6)
  np.testing.assert_allclose(outputs[0, :, 0, 0], [1, 2, 3], atol=1e-6)
  np.testing.assert_array_equal(jnp.argmax(heads[0, :, 1, 0], -1), [0, 1, 2])
  assert jnp.argmax(tape.rewind(end).heads[1, 0, 0]) == 0


def test_moving_left_wraps_around_the_tape():
  start = tape.blank_tape(1, 1, 1, 1, 5, jnp.float32)
  _, end, _ = tape.tape_scan(one_action(0, 3), start)
  np.testing.assert_allclose(end.values[0, 0, 0], [1, 0, 0, 3, 2], atol=1e-6)


def test_staying_overwrites_the_same_cell():
  start = tape.blank_tape(1, 1, 1, 1, 5, jnp.float32)
  _, end, _ = tape.tape_scan(one_action(2, 3), start)
  np.testing.assert_allclose(end.values[0, 0, 0], [3, 0, 0, 0, 0], atol=1e-6)


def test_jump_goes_to_the_cell_whose_key_is_asked_for():
  """Orthogonal keys on the first three cells; the query names the second."""
  n, keys = 5, jnp.eye(4)[:3]
  start = tape.blank_tape(1, 1, 1, 4, n, jnp.float32)
  actions = jax.nn.one_hot(jnp.array([1, 1, 3]), 4)
  controls = tape.Controls(
    value=jnp.zeros((1, 3, 1, 1)),
    key=keys[None, :, None],
    query=jnp.broadcast_to(keys[1], (1, 3, 1, 4)),
    p_r=jnp.ones((1, 3, 1)),
    p_w=jnp.ones((1, 3, 1)),
    p_e=jnp.ones((1, 3, 1)),
    actions=jnp.broadcast_to(actions[None, None, :, None], (2, 1, 3, 1, 4)),
  )
  _, end, _ = tape.tape_scan(controls, start)
  np.testing.assert_allclose(end.heads[1, 0, 0], jnp.eye(n)[1], atol=1e-6)


def test_sharpened_heads_stay_where_blurred_ones_spread():
  controls, _ = operands(tape.TRANSITIONS, s=100, k=4)
  blurred = jnp.broadcast_to(
    jnp.array([0.05, 0.9, 0.05, 0.0]), controls.actions.shape
  )
  start = tape.blank_tape(2, 3, 4, 4, 128, jnp.float32)

  def last(sharpen):
    _, end, _ = tape.tape_scan(
      controls._replace(actions=blurred), start, sharpen=sharpen
    )
    return np.asarray(end.heads)

  assert last(1.0).max() < 0.5
  sharp = last(1.5)
  assert (
    sharp.min(axis=(0, 1, 2)).argmax() == sharp.max(axis=(0, 1, 2)).argmax()
  )
  assert sharp[..., 100].min() > 0.99  # one step per token, none is lost


def test_sharpening_leaves_zeros_signs_and_gradients_alone():
  heads = jnp.array([0.0, 0.5, -0.5, 1.0]).reshape(2, 1, 1, 2)
  result = tape.sharpened(heads, 2.0)
  np.testing.assert_allclose(result.ravel(), [0, 0.25, -0.25, 1])
  gradient = jax.grad(lambda x: tape.sharpened(x, 1.5).sum())(heads)
  np.testing.assert_allclose(gradient, 1.5 * np.abs(heads) ** 0.5, rtol=1e-6)
