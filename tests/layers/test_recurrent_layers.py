"""What holds for both LSAM and the NAM Turing machine."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from jax import lax

from benchmarks import machines
from nam_jax import baselines
from nam_jax.layers.lsam import LSAM
from nam_jax.layers.lstm import LSTM
from nam_jax.layers.nam_tm import NAMTuringMachine
from nam_jax.ops import lsam, tape
from tests import linen_tools
from tests.agreement import Random, assert_agree

LAYERS = {
  "lsam": LSAM(features=8, num_heads=2, bidirectional=True),
  "nam_tm": NAMTuringMachine(num_heads=2),
}
layers = pytest.mark.parametrize("layer", LAYERS.values(), ids=LAYERS)
MACHINES = LAYERS | {
  "lstm": LSTM(features=4, bidirectional=True),
  "dnc": baselines.DNC(num_slots=6, slot_width=4, num_reads=2),
}
machines_too = pytest.mark.parametrize("layer", MACHINES.values(), ids=MACHINES)


def loss_of(layer):
  def loss(variables, x):
    return jnp.sum(layer.apply(variables, x)[0].astype(jnp.float32) ** 2)

  return loss


@layers
def test_gradients_are_finite_at_zero(layer):
  x = jnp.zeros((2, 5, 8))
  variables = linen_tools.random_params(layer, x, scale=0)
  grads = linen_tools.compiled(jax.grad(loss_of(layer), (0, 1)))(variables, x)
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads))


@machines_too
@pytest.mark.parametrize("shape", [(2, 0, 8), (0, 3, 8)])
def test_nothing_in_gives_no_outputs_and_no_gradient(layer, shape):
  x = jnp.zeros(shape)
  variables = linen_tools.random_params(layer, jnp.zeros((2, 3, 8)))
  outputs, _ = jax.eval_shape(layer.apply, variables, x)
  assert outputs.shape == shape
  grads = linen_tools.compiled(jax.grad(loss_of(layer)))(variables, x)
  assert not any(np.any(g) for g in jax.tree.leaves(grads))


@pytest.mark.parametrize(
  "layer",
  [*MACHINES.values(), baselines.LSTMAttention()],
  ids=[*MACHINES, "lstm_attention"],
)
def test_padding_can_hold_anything(layer):
  mask = linen_tools.GAPS
  x, control = linen_tools.normal(2, 2, 6, 8)
  inputs = {"x": x}
  if isinstance(layer, NAMTuringMachine):
    inputs["control"] = control
  variables = linen_tools.random_params(layer, **inputs)

  @linen_tools.compiled
  def run(variables, inputs):
    def loss(variables, inputs):
      result = layer.apply(variables, **inputs, mask=jnp.array(mask))
      outputs, state = result if isinstance(result, tuple) else (result, ())
      total = sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(state))
      real = jnp.where(mask[..., None], outputs, 0)
      return total + jnp.sum(jnp.sin(real)), (real, state)

    return jax.grad(loss, (0, 1), has_aux=True)(variables, inputs)

  def filled(value):
    return {n: np.where(mask[..., None], a, value) for n, a in inputs.items()}

  expected = run(variables, filled(np.float32(0)))
  for value in (np.nan, np.inf):
    assert_agree(run(variables, filled(np.float32(value))), expected, 0)


@layers
def test_vmap_jit_grad_and_checkpoint_compose(layer):
  x = Random().normal(2, 2, 4, 8)
  variables = linen_tools.random_params(layer, x[0])
  gradient = jax.grad(jax.checkpoint(loss_of(layer)), (0, 1))
  together = linen_tools.compiled(jax.vmap(gradient, (None, 0)))(variables, x)
  plain = linen_tools.compiled(jax.grad(loss_of(layer), (0, 1)))
  for i in range(2):
    alone = plain(variables, x[i])
    assert_agree(jax.tree.map(lambda g, i=i: g[i], together), alone, 1e-5)


@layers
def test_bfloat16_stays_near_float32(layer):
  x = Random().normal(2, 12, 8).astype(jnp.bfloat16)
  wide = x.astype(jnp.float32)
  variables = linen_tools.random_params(layer, wide)
  exact, _ = linen_tools.compiled(layer.apply)(variables, wide)
  narrow = layer.clone(dtype=jnp.bfloat16)
  outputs, state = linen_tools.compiled(narrow.apply)(variables, x)
  assert outputs.dtype == jnp.bfloat16
  assert all(leaf.dtype == jnp.float32 for leaf in state)
  # Weights and projections are rounded to 2^-9; the recurrence is not.
  assert_agree(outputs.astype(np.float32), exact, 2**-5)


@pytest.mark.parametrize(
  "layer",
  [LSAM(features=32, num_heads=2), NAMTuringMachine(num_heads=2)],
  ids=LAYERS,
)
def test_memories_are_cut_where_compiled_for_a_cpu(layer):
  x = jax.ShapeDtypeStruct((2, 5, 32), jnp.float32)
  variables = linen_tools.random_params(layer, jnp.zeros(x.shape))
  traced = jax.jit(jax.grad(loss_of(layer))).trace(variables, x)

  def is_cut(*platforms):
    text = traced.lower(lowering_platforms=platforms).as_text()
    return re.search("x16x[48]x4xf32>", text) is not None

  assert is_cut("cpu")
  assert is_cut("cpu", "cuda")
  assert not is_cut("cuda")
  assert not is_cut("tpu")


def losses_of_training(apply, variables, x, steps=50):
  """The loss before every step of learning to repeat the previous token."""
  optimizer = optax.adam(1e-2)

  def loss(variables):
    return jnp.mean((apply(variables, x)[:, 1:] - x[:, :-1]) ** 2)

  def step(carry, _):
    variables, state = carry
    value, grads = jax.value_and_grad(loss)(variables)
    with jax.numpy_dtype_promotion("standard"):  # optax needs it
      updates, state = optimizer.update(grads, state)
    return (optax.apply_updates(variables, updates), state), value

  @linen_tools.compiled
  def run(variables):
    start = (variables, optimizer.init(variables))
    return lax.scan(step, start, None, steps)[1]

  return run(variables)


@pytest.mark.parametrize("name", ["lsam", "nam_tm", "dnc"])
def test_training_goes_as_with_a_plain_scan(name):
  x = Random().normal(4, 7, 8)
  cell = baselines.DNCCell(features=8, controller_features=8, num_slots=6)
  layer = {**LAYERS, "dnc": baselines.DNC(num_slots=6)}[name]
  variables = jax.jit(layer.init)(jax.random.key(0), x)

  def apply(variables, x):
    return layer.apply(variables, x)[0]

  fast = losses_of_training(apply, variables, x)
  with (
    machines.replaced(lsam, "lsam_scan")(),
    machines.replaced(tape, "tape_scan")(),
    machines.plain_addressing(),
  ):
    slow = losses_of_training(
      nn.RNN(cell).apply if name == "dnc" else apply, variables, x
    )
  assert fast[-1] < 0.95 * fast[0]
  assert_agree(fast, slow, 1e-5)
