"""The public API: its names, and that all of it runs where it is meant to.

Lowering for another platform needs no such device; it shows that no operation
is missing there, not how fast it is.
"""

import functools

import jax
import jax.numpy as jnp
import pytest
from flax import linen as nn
from flax import nnx

import nam_jax
from tests.agreement import Random, assert_agree

NAMES = [
  "BlockStyle",
  "DNC",
  "DNCCell",
  "EncoderState",
  "JUMP",
  "LEFT",
  "LRU",
  "LSAM",
  "LSAMCell",
  "LSAMState",
  "LSTM",
  "LSTMAttention",
  "NAMAttention",
  "NAMState",
  "NAMTuringMachine",
  "NO_OP",
  "PRESETS",
  "RIGHT",
  "SelfAttention",
  "TRANSITIONS",
  "Tape",
  "TensorMemory",
  "TransformerBlock",
  "TransformerEncoder",
  "Transition",
  "UniversalTransformer",
  "__version__",
  "export_step",
  "generate",
  "linear_attention",
  "linear_attention_fn",
  "linearize",
  "memory",
  "memory_chunked",
  "memory_scan",
  "memory_several_writes",
  "memory_sharded",
  "nam_attention_fn",
  "outer_product_attention",
  "outer_product_attention_sharded",
  "read",
  "rewind",
  "unit",
  "write",
]


def softmax():
  return nam_jax.SelfAttention(num_heads=2)


LAYERS = {
  "nam_bidirectional": nam_jax.NAMAttention(2),
  "nam_causal": nam_jax.NAMAttention(2, "causal"),
  "nam_erase": nam_jax.NAMAttention(2, "erase"),
  "nam_both_ways": nam_jax.NAMAttention(
    2, bidirectional=True, **nam_jax.PRESETS["gated_deltanet2"]
  ),
  "linen_nam": nn.MultiHeadDotProductAttention(
    num_heads=2, attention_fn=nam_jax.nam_attention_fn
  ),
  "linen_linear": nn.MultiHeadDotProductAttention(
    num_heads=2, attention_fn=nam_jax.linear_attention_fn
  ),
  "lsam": nam_jax.LSAM(8, 2, bidirectional=True),
  "nam_tm": nam_jax.NAMTuringMachine(2),
  "transformer": nam_jax.TransformerEncoder(softmax, 1, 16),
  "universal": nam_jax.UniversalTransformer(softmax, 16, 2),
  "lstm": nam_jax.LSTM(8, bidirectional=True),
  "lstm_attention": nam_jax.LSTMAttention(8),
  "lru": nam_jax.LRU(),
  "dnc": nam_jax.DNC(8, 4, 4, 2),
}
SEQUENCES = {
  "memory": nam_jax.memory,
  "memory_scan": nam_jax.memory_scan,
  "memory_chunked": nam_jax.memory_chunked,
  "outer_product": nam_jax.outer_product_attention,
  "outer_product_causal": functools.partial(
    nam_jax.outer_product_attention, causal=True
  ),
  "linear_attention": functools.partial(nam_jax.linear_attention, causal=True),
}


def layer_loss(layer, variables, x):
  outputs = layer.apply(variables, x)
  outputs = outputs[0] if isinstance(outputs, tuple) else outputs
  return jnp.sum(outputs**2)


def sequence_loss(form, q, k, v):
  outputs = form(nam_jax.unit(q), nam_jax.unit(k), v)
  outputs = outputs[0] if isinstance(outputs, tuple) else outputs
  return jnp.sum(outputs**2)


def test_the_public_names_are_these():
  assert sorted(nam_jax.__all__) == sorted(NAMES)
  assert all(hasattr(nam_jax, name) for name in NAMES)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers_and_their_gradients_lower_for_accelerators(name, platform):
  layer, x = LAYERS[name], jax.ShapeDtypeStruct((2, 40, 8), jnp.float32)
  key = jax.eval_shape(lambda: jax.random.key(0))
  variables = jax.eval_shape(layer.init, key, x)
  loss = functools.partial(layer_loss, layer)
  traced = jax.jit(jax.grad(loss)).trace(variables, x)
  text = traced.lower(lowering_platforms=(platform,)).as_text()
  assert "callback" not in text


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequence_forms_lower_for_accelerators(name, platform):
  x = jax.ShapeDtypeStruct((2, 100, 2, 8), jnp.bfloat16)

  def loss(q, k, v):
    out = SEQUENCES[name](nam_jax.unit(q), nam_jax.unit(k), v)
    out = out[0] if isinstance(out, tuple) else out
    return jnp.sum(out.astype(jnp.float32))

  traced = jax.jit(jax.grad(loss, (0, 1, 2))).trace(x, x, x)
  traced.lower(lowering_platforms=(platform,))


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_primitives_lower_for_accelerators(platform):
  def step(M, k, v):
    M = nam_jax.write(M, nam_jax.unit(k), v)
    deep = nam_jax.TensorMemory(M).write(v, nam_jax.unit(k))
    return nam_jax.read(deep.M, k)

  shapes = ((3, 4, 5), (3, 5), (3, 4))
  avals = [jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes]
  jax.jit(step).trace(*avals).lower(lowering_platforms=(platform,))


def test_layers_work_in_nnx_through_its_bridge():
  x = Random().normal(2, 5, 8)
  layer = nam_jax.NAMAttention(2, "erase")
  bridged = nnx.bridge.ToNNX(layer, rngs=nnx.Rngs(0)).lazy_init(x)
  params = nnx.to_pure_dict(nnx.state(bridged, nnx.Param))
  assert_agree(bridged(x), layer.apply({"params": params}, x), 1e-6)


def sequence_gradient(name, s):
  x = jax.ShapeDtypeStruct((1, s, 2, 16), jnp.float32)
  loss = functools.partial(sequence_loss, SEQUENCES[name])
  return jax.jit(jax.grad(loss, (0, 1, 2))).lower(x, x, x)


def layer_gradient(name, s):
  x = jax.ShapeDtypeStruct((1, s, 8), jnp.float32)
  key = jax.eval_shape(lambda: jax.random.key(0))
  variables = jax.eval_shape(LAYERS[name].init, key, x)
  loss = functools.partial(layer_loss, LAYERS[name])
  return jax.jit(jax.grad(loss)).lower(variables, x)


@pytest.mark.parametrize(
  "gradient",
  [functools.partial(sequence_gradient, name) for name in SEQUENCES]
  + [
    functools.partial(layer_gradient, name)
    for name in ("nam_erase", "lru", "lsam", "nam_tm")
  ],
  ids=[*SEQUENCES, "nam_erase", "lru", "lsam", "nam_tm"],
)
def test_cost_of_the_gradient_grows_linearly_with_the_sequence(gradient):
  """Work and temporary memory, as reported by the compiled program."""

  def costs(s):
    compiled = gradient(s).compile()
    memory = compiled.memory_analysis().temp_size_in_bytes
    return memory, compiled.cost_analysis()["flops"]

  # Twice doubled. Below this, XLA replans its buffers as a sequence grows.
  memory, flops = zip(costs(4096), costs(16384), strict=True)
  assert memory[1] < 2.1**2 * memory[0]
  # A loop is counted once, whatever its length, so work may grow more slowly.
  assert flops[1] < 2.1**2 * flops[0]
