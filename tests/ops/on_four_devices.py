"""The memory of a split sequence against that of a whole one.

These tests need four devices; `test_sharded.py` runs them with four.
"""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import nam_jax
from nam_jax.ops import memory_form, outer_product, sharded
from tests import linen_tools
from tests.agreement import Random, assert_agree, by_position

SPLIT = P(None, "seq")
WHOLE = by_position(memory_form.memory)
MEMORY = by_position(functools.partial(sharded.memory_sharded, axis_name="seq"))
ATTENTION = functools.partial(
  sharded.outer_product_attention_sharded, axis_name="seq"
)
# Sums that agree to 1e-5 may round to neighbours in bfloat16, which are 2^-7 of
# a power of two apart.
NEIGHBOUR = 2**-7
COLLECTIVES = (
  "all-reduce",
  "all-gather",
  "all-to-all",
  "reduce-scatter",
  "collective-permute",
  "collective-broadcast",
)


def make_mesh(data=1):
  devices = np.asarray(jax.devices()).reshape(data, -1)
  assert devices.size == 4
  return Mesh(devices, ("data", "seq"))


def make_tokens(s, b=2, h=2, k=5, v=4):
  """Unit queries and keys, values, three gates, and an uneven mask."""
  rng = Random(s)
  mask = np.array(rng.mask(b, s))
  mask[0, s // 4 : s // 2] = False  # all of the second device's
  mask[1, -(s // 3) :] = False
  tokens = [rng.unit(b, s, h, k) for _ in range(2)]
  tokens += [rng.normal(b, s, h, v), *(rng.uniform(b, s, h) for _ in range(3))]
  return tokens, jnp.asarray(mask)


def on_devices(form, mesh, tokens, *others, check=True):
  """form with the tokens split, but not what it returns after the outputs."""
  split = P("data", "seq")
  return jax.shard_map(
    form,
    mesh=mesh,
    in_specs=(split,) * tokens + others,
    out_specs=(split, P("data")),
    check_vma=check,
  )


def outputs_and_gradients(form, arrays):
  """(outputs, memory), and gradients of a scalar that depends on all of it."""

  def total(*arrays):
    result = form(*arrays)
    parts = [jnp.sum(jnp.sin(a.astype(jnp.float32))) for a in result]
    return sum(parts), result

  count = range(sum(jnp.issubdtype(a.dtype, jnp.floating) for a in arrays))
  return jax.jit(jax.grad(total, tuple(count), has_aux=True))(*arrays)


@pytest.mark.parametrize(
  ("s", "reverse", "data"), [(148, False, 1), (8, True, 2)]
)
def test_memory_with_masks_and_initial_memory(s, reverse, data):
  tokens, mask = make_tokens(s)
  M0 = Random(1).normal(2, 2, 4, 5)

  def whole(*arrays, form=WHOLE):
    *x, M0, mask = arrays
    return form(*x, initial_memory=M0, mask=mask, reverse=reverse)

  span = functools.partial(whole, form=MEMORY)
  split = on_devices(span, make_mesh(data), 6, P("data"), P("data", "seq"))
  arrays = (*tokens, M0, mask)
  actual = outputs_and_gradients(split, arrays)
  assert_agree(actual, outputs_and_gradients(whole, arrays), 1e-5)


@pytest.mark.parametrize("channels", [1, 5])
def test_memory_with_decay(channels):
  (q, k, v, _, p_w, p_e), mask = make_tokens(60)
  log_decay = -Random(2).uniform(2, 60, 2, channels)
  log_decay = log_decay[..., 0] if channels == 1 else log_decay

  def whole(q, k, v, p_w, p_e, log_decay, mask, form=memory_form.memory):
    return form(q, k, v, p_w=p_w, p_e=2 * p_e, log_decay=log_decay, mask=mask)

  split_form = functools.partial(sharded.memory_sharded, axis_name="seq")
  span = functools.partial(whole, form=split_form)
  split = on_devices(span, make_mesh(), 7)
  arrays = (q, k, v, p_w, p_e, log_decay, mask)
  actual = outputs_and_gradients(split, arrays)
  assert_agree(actual, outputs_and_gradients(whole, arrays), 1e-5)


@pytest.mark.parametrize(("p_e", "check"), [(0, False), (None, True)])
def test_memory_with_one_probability(p_e, check):
  (q, k, v, *_), _ = make_tokens(60)

  def whole(q, k, v, p, form=WHOLE):
    p = jnp.broadcast_to(p, q.shape[:3])
    return form(q, k, v, p, p, p if p_e is None else p_e)

  span = functools.partial(whole, form=MEMORY)
  split = on_devices(span, make_mesh(), 3, P(), check=check)
  arrays = (q, k, v, jnp.float32(0.6))
  actual = outputs_and_gradients(split, arrays)
  assert_agree(actual, outputs_and_gradients(whole, arrays), 1e-5)


def test_memory_in_bfloat16():
  tokens, mask = make_tokens(100)
  arrays = (*(a.astype(jnp.bfloat16) for a in tokens), mask)

  def whole(*arrays, form=WHOLE):
    return form(*arrays[:-1], mask=arrays[-1])

  span = functools.partial(whole, form=MEMORY)
  split = on_devices(span, make_mesh(), 7)
  actual = outputs_and_gradients(split, arrays)
  expected = outputs_and_gradients(whole, arrays)
  assert actual[1][0].dtype == jnp.bfloat16
  assert_agree(actual[1][1], expected[1][1], 1e-5)
  wide = functools.partial(jax.tree.map, lambda a: a.astype(jnp.float32))
  assert_agree(wide(actual), wide(expected), NEIGHBOUR)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_outer_product_attention(dtype):
  (*tokens, _), mask = make_tokens(148)
  arrays = (*(a.astype(dtype) for a in tokens), mask)

  def whole(
    q, k, v, p_r, p_w, mask, form=outer_product.outer_product_attention
  ):
    return (form(q, k, v, p_r=p_r, p_w=p_w, mask=mask),)

  span = functools.partial(whole, form=ATTENTION)
  split = jax.shard_map(
    span, mesh=make_mesh(), in_specs=SPLIT, out_specs=(SPLIT,)
  )
  actual = outputs_and_gradients(split, arrays)
  expected = outputs_and_gradients(whole, arrays)
  assert actual[1][0].dtype == dtype
  wide = functools.partial(jax.tree.map, lambda a: a.astype(jnp.float32))
  tolerance = 1e-5 if dtype == jnp.float32 else NEIGHBOUR
  assert_agree(wide(actual), wide(expected), tolerance)


MACHINES = {
  "lsam": nam_jax.LSAM(features=8, num_heads=2, bidirectional=True),
  "nam_tm": nam_jax.NAMTuringMachine(num_heads=2),
  "lstm": nam_jax.LSTM(features=4),
  "dnc": nam_jax.DNC(num_slots=6, slot_width=4, num_reads=2),
}


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_machines_with_a_split_batch(machine):
  """The parameters are on all devices; their gradients are sums over them."""
  x, mask = Random().normal(4, 5, 8), Random().mask(4, 5)
  params = linen_tools.random_params(machine, x)

  def loss(params, x, mask):
    outputs, state = machine.apply(params, x, mask=mask)
    return sum(jnp.sum(jnp.sin(a)) for a in jax.tree.leaves((outputs, state)))

  @functools.partial(
    jax.shard_map,
    mesh=make_mesh(data=4),
    in_specs=(P(), P("data"), P("data")),
    out_specs=(P(), P("data")),
  )
  def gradients(params, x, mask):
    return jax.grad(loss, (0, 1))(params, x, mask)

  actual = linen_tools.compiled(gradients)(params, x, mask)
  expected = linen_tools.compiled(jax.grad(loss, (0, 1)))(params, x, mask)
  assert_agree(actual, expected, 1e-5)


def compiled_text(form, arrays):
  return jax.jit(form).lower(*arrays).compile().as_text()


def collectives(text):
  """(operation, shape of its result) of each collective in a program."""
  names = "|".join(COLLECTIVES)
  found = re.findall(rf"= \w+\[([\d,]*)\]\S* ({names})(?:-start)?\(", text)
  return sorted((name, shape) for shape, name in found)


def test_what_the_devices_exchange():
  """Memories only: no device ever holds the whole sequence."""
  (q, k, v, p_r, p_w, p_e), _ = make_tokens(148, b=3, h=2, k=5, v=4)
  specs = {"mesh": make_mesh(), "in_specs": SPLIT}
  final = {"out_specs": (SPLIT, P())}

  @functools.partial(jax.shard_map, **specs, out_specs=SPLIT)
  def outputs(*x):
    return MEMORY(*x)[0]

  @functools.partial(jax.shard_map, **specs, **final)
  def never_erased(*x):
    return MEMORY(*x, 0)

  with_final = jax.shard_map(MEMORY, **specs, **final)
  both_ways = jax.shard_map(ATTENTION, **specs, out_specs=SPLIT)
  total = ("all-reduce", "3,2,4,5")
  spans = [("collective-permute", "3,2,9,5")] * 3
  values = [("collective-permute", "3,2,4,5")] * 3
  cases = [
    (both_ways, (q, k, v), [total]),
    (outputs, (q, k, v, p_r, p_w, p_e), spans),
    (with_final, (q, k, v, p_r, p_w, p_e), [total, *spans]),
    (never_erased, (q, k, v, p_r, p_w), [total, *values]),
  ]
  for form, arrays, expected in cases:
    text = compiled_text(form, arrays)
    assert collectives(text) == expected
    assert "[3,37,2,5]" in text
    sizes = {
      int(n) for s in re.findall(r"\[([\d,]+)\]", text) for n in s.split(",")
    }
    assert max(sizes) < 148
