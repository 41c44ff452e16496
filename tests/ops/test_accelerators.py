"""How long the loops of the forms are: blocks of tokens on an accelerator."""

import functools
import math
from collections.abc import Iterator
from unittest import mock

import jax
import jax.numpy as jnp
import pytest

import nam_jax
from nam_jax.ops import hardware

TOKENS, CHUNK = 1024, 64
FORMS = {
  "memory": (nam_jax.memory, TOKENS // CHUNK),
  "chunked": (nam_jax.memory_chunked, TOKENS // CHUNK),
  "causal": (
    functools.partial(nam_jax.outer_product_attention, causal=True),
    TOKENS // CHUNK,
  ),
  "bidirectional": (nam_jax.outer_product_attention, 0),
  "scan": (nam_jax.memory_scan, TOKENS),  # the slow twin does have one
}


def loops(jaxpr, outside: int = 1) -> Iterator[int]:
  """How often the body of each loop runs, in total for a nested one."""
  for equation in jaxpr.eqns:
    name, params = equation.primitive.name, equation.params
    runs = outside
    if name == "scan":
      runs = outside * params["length"]
      yield runs
    elif name == "while":
      yield math.inf
    for value in params.values():
      if hasattr(value, "eqns"):
        yield from loops(value, runs)


@pytest.mark.parametrize("name", FORMS)
def test_a_form_runs_no_loop_longer_than_its_blocks(name):
  form, expected = FORMS[name]

  def loss(q, k, v):
    out = form(nam_jax.unit(q), nam_jax.unit(k), v)
    return jnp.sum(out[0] if isinstance(out, tuple) else out)

  x = jax.ShapeDtypeStruct((2, TOKENS, 2, 8), jnp.float32)
  with mock.patch.object(hardware, "on_cpu", return_value=False):
    traced = jax.jit(jax.grad(loss, (0, 1, 2))).trace(x, x, x)
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
  assert max(loops(traced.jaxpr), default=0) == expected
  assert "callback" not in text
  assert "lapack" not in text


@pytest.mark.parametrize(
  ("form", "width", "p_e", "expected"),
  [
    (nam_jax.memory, 64, 1.0, TOKENS),
    (nam_jax.memory, 65, 1.0, TOKENS // 32),
    (nam_jax.memory, 64, 0, TOKENS // 32),
    (nam_jax.memory_chunked, 64, 1.0, TOKENS // 32),
    (nam_jax.memory_scan, 65, 0, TOKENS),
  ],
)
def test_on_a_cpu_memory_runs_narrow_keys_that_erase_token_by_token(
  form, width, p_e, expected
):
  def loss(q, k, v):
    return jnp.sum(form(q, k, v, p_e=p_e)[0])

  x = jax.ShapeDtypeStruct((2, TOKENS, 2, width), jnp.float32)
  with mock.patch.object(hardware, "on_cpu", return_value=True):
    traced = jax.jit(jax.grad(loss, (0, 1, 2))).trace(x, x, x)
  assert max(loops(traced.jaxpr)) == expected
