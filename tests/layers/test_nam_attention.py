"""NAMAttention: modes, masks, streaming, and its place in a Transformer."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.layers.nam_attention import NAMAttention
from nam_jax.layers.nam_heads import NAMState
from nam_jax.layers.nam_settings import MODES
from nam_jax.layers.self_attention import SelfAttention
from nam_jax.layers.transformer import TransformerEncoder
from tests import linen_tools
from tests.agreement import Random, assert_agree


def made(mode, x, **fields):
  """The compiled layer with random parameters, and those parameters."""
  layer = NAMAttention(num_heads=2, mode=mode, **fields)
  variables = linen_tools.random_params(layer, x)

  @functools.partial(jax.jit, static_argnames=("method", "train"))
  def apply(*args, **options):
    return layer.apply(variables, *args, **options)

  return apply, variables


@pytest.mark.parametrize("mode", MODES)
def test_padding_never_changes_a_real_output(mode):
  rng = Random()
  x = rng.normal(2, 20, 8)
  layer, _ = made(mode, x)
  short = layer(x)
  padded = np.concatenate([x, rng.normal(2, 15, 8)], axis=1)
  mask = np.broadcast_to(np.arange(35) < 20, (2, 35))
  long = layer(padded, mask=mask)
  assert_agree(long[:, :20], short, 1e-5)


def test_mean_writes_are_the_mean_of_the_real_tokens():
  rng = Random()
  x, length = rng.normal(3, 9, 8), np.array([4, 9, 0])
  mask = np.arange(9)[None] < length[:, None]
  layer, variables = made("bidirectional", x, mean_writes=True)
  output = layer(x, mask=mask)
  p = jax.tree.map(np.asarray, variables["params"])
  q, k, v = (
    np.tensordot(np.asarray(x), p[name]["kernel"], 1)
    for name in ("query", "key", "value")
  )
  q, k = (a / np.linalg.norm(a, axis=-1, keepdims=True) for a in (q, k))
  expected = np.zeros_like(output)
  for b, h in np.ndindex(2, 2):  # the third row has no real token
    n = length[b]
    M = np.mean([np.outer(v[b, t, h], k[b, t, h]) for t in range(n)], axis=0)
    expected[b, :n] += q[b, :n, h] @ M.T @ p["out"]["kernel"][h]
  assert_agree(output, expected, 1e-5)
  whole = layer(x)
  assert_agree(whole[1], output[1], 1e-5)


@pytest.mark.parametrize("mode", ["causal", "erase"])
def test_token_by_token_equals_the_whole_sequence(mode):
  x = Random().normal(2, 9, 8)
  layer, _ = made(mode, x)
  step = functools.partial(layer, method="continue_from")
  whole, final = step(x, None)
  assert_agree(whole, layer(x), 1e-6)
  memory, outputs = jnp.zeros_like(final), []
  for t in range(9):
    output, memory = step(x[:, t : t + 1], memory)
    outputs.append(output)
  assert_agree(np.concatenate(outputs, axis=1), whole, 1e-5)
  assert_agree(memory, final, 1e-5)


@pytest.mark.parametrize("mode", ["causal", "erase"])
def test_a_causal_output_does_not_depend_on_later_tokens(mode):
  rng = Random()
  x = rng.normal(1, 12, 8)
  layer, _ = made(mode, x)
  changed = np.concatenate([x[:, :7], rng.normal(1, 5, 8)], axis=1)
  a, b = layer(x), layer(changed)
  assert_agree(a[:, :7], b[:, :7], 1e-6)
  assert np.abs(a[:, 7:] - b[:, 7:]).max() > 1e-3


def test_initial_gates_are_the_given_probabilities():
  x = jnp.zeros((1, 3, 8))
  layer = NAMAttention(2, "erase", initial_write=0.9, initial_erase=0.2)
  p = linen_tools.compiled(layer.init)(jax.random.key(0), x)["params"]
  for name, expected in (("write_gate", 0.9), ("erase_gate", 0.2)):
    actual = 1 / (1 + np.exp(-p[name]["bias"]))
    np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_parameters_start_as_those_of_softmax_attention():
  x, fields = jnp.zeros((1, 3, 8)), {"num_heads": 2, "use_bias": True}
  params, expected = (
    linen_tools.compiled(layer(**fields).init)(jax.random.key(0), x)
    for layer in (NAMAttention, SelfAttention)
  )
  jax.tree.map(np.testing.assert_array_equal, params, expected)


@pytest.mark.parametrize("mode", MODES)
def test_a_transformer_of_it_trains_one_step_in_bfloat16(mode):
  x = Random().normal(2, 10, 8)
  attention = functools.partial(
    NAMAttention, num_heads=2, mode=mode, dtype=jnp.bfloat16
  )
  encoder = TransformerEncoder(attention, 1, 16, dtype=jnp.bfloat16)

  def loss(variables):
    return jnp.sum(encoder.apply(variables, x).astype(jnp.float32) ** 2)

  with jax.numpy_dtype_promotion("standard"):  # flax's LayerNorm needs it
    variables = linen_tools.random_params(encoder, x)
    grads = linen_tools.compiled(jax.grad(loss))(variables)
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(grads))
  assert any(g.any() for g in jax.tree.leaves(grads))


def test_dropout_is_on_in_training_only():
  x = Random().normal(1, 6, 8)
  layer, _ = made("causal", x, dropout_rate=0.5)
  rngs = {"dropout": jax.random.key(1)}
  plain = layer(x)
  dropped = layer(x, train=True, rngs=rngs)
  assert np.abs(plain - dropped).max() > 1e-3


@pytest.mark.parametrize(
  ("fields", "message"),
  [
    ({"mode": "backward"}, r"mode must be one of .* got 'backward'"),
    ({"initial_write": 1.5}, r"initial_write must lie .* got 1.5"),
    ({"initial_erase": 0.0}, r"initial_erase must lie .* got 0.0"),
    ({"mode": "erase", "max_erase": 3}, "max_erase must lie .* got 3"),
    (
      {"mode": "causal", "mean_writes": True},
      r"mean_writes needs mode='bidirectional', got 'causal'",
    ),
    (
      {"decay": "head"},
      r"decay needs mode='causal' or 'erase', got 'bidirectional'",
    ),
    (
      {"mode": "causal", "max_erase": 2},
      r"max_erase needs mode='erase', got 'causal'",
    ),
    (
      {"mode": "erase", "gates": "channel", "tied_gates": True},
      r"tied_gates needs gates='head', got 'channel'",
    ),
    (
      {"mode": "erase", "tied_gates": True, "initial_write": 0.7},
      r"initial_write and initial_erase must be equal, got 0.7 and 0.5",
    ),
    (
      {"mode": "causal", "decay": "channel", "decay_from": "fixed"},
      r"decay_from='fixed' needs decay='head', got 'channel'",
    ),
    (
      {"mode": "causal", "decay_from": "learned"},
      r"decay_from='learned' needs a decay",
    ),
    ({"mode": "causal", "convolution": 1}, r"convolution must be .* got 1"),
    ({"mode": "erase", "num_writes": 0}, "num_writes must be .* got 0"),
    ({"mode": "causal", "num_writes": 2}, "num_writes needs mode='erase'"),
    (
      {"num_heads": 3, "mode": "causal", "bidirectional": True},
      r"bidirectional=True splits .* num_heads=3 is odd",
    ),
  ],
)
def test_bad_fields_are_refused_when_the_layer_is_made(fields, message):
  with pytest.raises(ValueError, match=message):
    NAMAttention(**{"num_heads": 2, **fields})


def test_heads_that_do_not_divide_are_refused():
  with pytest.raises(ValueError, match="num_heads=3 does not divide qkv_dim=8"):
    NAMAttention(num_heads=3).init(jax.random.key(0), jnp.zeros((1, 2, 8)))


@pytest.mark.parametrize(
  "fields", [{}, {"mode": "causal", "bidirectional": True}]
)
def test_a_bidirectional_layer_has_no_memory_to_carry(fields):
  layer = NAMAttention(num_heads=2, **fields)
  x = jnp.zeros((1, 2, 8))
  with pytest.raises(ValueError, match="no memory to continue from"):
    layer.init(jax.random.key(0), x, None, method="continue_from")


def test_a_state_without_its_tail_is_refused():
  layer = NAMAttention(2, "causal", convolution=4)
  x, memory = jnp.zeros((1, 2, 8)), jnp.zeros((1, 2, 4, 4))
  with pytest.raises(ValueError, match=r"is a NAMState .* got .*Array"):
    layer.init(jax.random.key(0), x, memory, method="continue_from")
  state = NAMState(memory, jnp.zeros((1, 2, 3, 2, 4)))
  with pytest.raises(ValueError, match=r"state.tail must have .*\(1, 3, 3,"):
    layer.init(jax.random.key(0), x, state, method="continue_from")
