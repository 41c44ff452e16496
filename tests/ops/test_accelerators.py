"""What programs lowered for an accelerator run: blocks, no loop over tokens.

Nothing is patched: the form must follow the platform that a program is lowered
for, and the machine that traces it is a CPU. `make accelerators` goes on from
here and compiles them.
"""

import functools

import jax
import jax.numpy as jnp
import pytest

import nam_jax
from tests import lowered

TOKENS, CHUNK = 1024, 64
ACCELERATORS = ("cuda", "tpu")


def decays(q, k, v, **gates):
  """One decay per head."""
  return nam_jax.memory(q, k, v, log_decay=-jnp.square(k[..., 0]), **gates)


def by_channel(q, k, v, **gates):
  """Every gate per channel, but those given."""
  gates = {"p_w": jax.nn.sigmoid(v), "p_e": jax.nn.sigmoid(k)} | gates
  return nam_jax.memory(q, k, v, log_decay=-jnp.square(k), **gates)


# A form, and how often the body of its longest loop runs.
FORMS = {
  "memory": (nam_jax.memory, TOKENS // CHUNK),
  "decays": (decays, TOKENS // CHUNK),
  "by channel": (by_channel, TOKENS // CHUNK),
  "chunked": (nam_jax.memory_chunked, TOKENS // CHUNK),
  "causal": (
    functools.partial(nam_jax.outer_product_attention, causal=True),
    TOKENS // CHUNK,
  ),
  "bidirectional": (nam_jax.outer_product_attention, 0),
  "scan": (nam_jax.memory_scan, TOKENS),  # the slow twin does have one
}
TASKS = ("forward", "gradient")


def trace(form, task, width=8, **gates):
  """The traced form, or its gradient for queries, keys and values."""

  def loss(q, k, v):
    out = form(q, k, v, **gates)
    return jnp.sum(out[0] if isinstance(out, tuple) else out)

  function = loss if task == "forward" else jax.grad(loss, (0, 1, 2))
  x = jax.ShapeDtypeStruct((2, TOKENS, 2, width), jnp.float32)
  return jax.jit(function).trace(x, x, x)


def lower(traced, platform):
  return traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", FORMS)
def test_a_form_runs_no_loop_longer_than_its_blocks(name, task):
  form, expected = FORMS[name]
  traced = trace(form, task)
  for platform in ACCELERATORS:
    text = lower(traced, platform)
    assert max(lowered.loops(text), default=0) == expected
    assert "callback" not in text
    assert "lapack" not in text


def test_chunks_of_a_given_size_are_computed_all_at_once():
  chunked = functools.partial(nam_jax.memory_chunked, chunk_size=32)
  traced = trace(chunked, "gradient")
  for platform in ACCELERATORS:
    loops = set(lowered.loops(lower(traced, platform)))
    assert loops - {1} == {TOKENS // 32}


@pytest.mark.parametrize("task", TASKS)
def test_only_the_triangular_inverse_asks_for_exact_products(task):
  traced = trace(nam_jax.memory_chunked, task)
  for platform in ACCELERATORS:
    products = [
      line
      for line in lowered.executed(lower(traced, platform))
      if "stablehlo.dot_general" in line.text
    ]
    exact = [p for p in products if "[HIGHEST, HIGHEST]" in p.text]
    default = [p for p in products if "[DEFAULT, DEFAULT]" in p.text]
    assert len(exact) + len(default) == len(products)
    assert exact
    assert max(p.times for p in exact) < TOKENS // CHUNK
    assert max(p.times for p in default) == TOKENS // CHUNK


@pytest.mark.parametrize(
  ("form", "width", "p_e", "expected"),
  [
    (nam_jax.memory, 64, 1.0, TOKENS),
    (nam_jax.memory, 128, 1.0, TOKENS // CHUNK),
    (nam_jax.memory, 64, 0, TOKENS // CHUNK),
    (decays, 32, 1.0, TOKENS),
    (decays, 64, 1.0, TOKENS // CHUNK),
    (decays, 16, 0, TOKENS),
    (decays, 32, 0, TOKENS // CHUNK),
    (by_channel, 32, 0, TOKENS),
    (by_channel, 64, 0, TOKENS // CHUNK),
    (nam_jax.memory_chunked, 64, 1.0, TOKENS // CHUNK),
    (nam_jax.memory_scan, 128, 0, TOKENS),
  ],
)
def test_on_a_cpu_narrow_memories_that_erase_or_decay_run_token_by_token(
  form, width, p_e, expected
):
  text = lower(trace(form, "gradient", width, p_e=p_e), "cpu")
  assert max(lowered.loops(text)) == expected


def test_loops_are_counted_inside_each_other_and_by_platform():
  def loop(body, length):
    return lambda x: jax.lax.fori_loop(0, length, lambda _, x: body(x), x)

  def run(x):
    return jax.lax.platform_dependent(
      x, cpu=loop(jnp.sin, 7), default=loop(loop(jnp.cos, 3), 5)
    )

  x = jax.ShapeDtypeStruct((4,), jnp.float32)
  traced = jax.jit(run).trace(x)
  for platform, expected in (("cpu", [7]), ("cuda", [5, 15])):
    assert sorted(lowered.loops(lower(traced, platform))) == expected
  platforms = ("cpu", "tpu")
  text = jax.export.export(jax.jit(run), platforms=platforms)(x).mlir_module()
  assert lowered.loops(text, 0) == [7]
  assert sorted(lowered.loops(text, 1)) == [5, 15]


def test_a_loop_without_a_known_end_is_endless():
  def run(x):
    return jax.lax.while_loop(lambda x: x.sum() < 9, jnp.sin, x)

  traced = jax.jit(run).trace(jax.ShapeDtypeStruct((4,), jnp.float32))
  assert lowered.loops(lower(traced, "cuda")) == [float("inf")]
