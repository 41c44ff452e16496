"""The public forms and layers as programs to compile, at typical sizes."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding
from jax.sharding import SingleDeviceSharding as OnOne

import nam_jax

FORM = (2, 2048, 4, 64)  # [b s h k]
MACHINE = (128, 39, 64)  # [b s d]
TASKS = ("forward", "gradient")


class Program(NamedTuple):
  """A function, and its arguments: shapes, types, and where they are."""

  function: Callable[..., Any]
  arguments: tuple[Any, ...]

  def task(self, name: str) -> Callable[..., Any]:
    """The function itself, or the gradient for all of its arguments."""
    if name == "forward":
      return self.function

    def loss(*arguments):
      outputs = jax.tree.leaves(self.function(*arguments))
      floats = [a for a in outputs if jnp.issubdtype(a.dtype, jnp.floating)]
      return sum(jnp.sum(a**2) for a in floats)

    return jax.value_and_grad(loss, tuple(range(len(self.arguments))))


Maker = Callable[[Sequence[jax.Device]], Program]


def _array(shape: tuple[int, ...], sharding: Sharding):
  return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)


def _plain(form, **options) -> Maker:
  """A form of queries, keys and values."""

  def make(devices):
    heads = _array(FORM, OnOne(devices[0]))
    return Program(functools.partial(form, **options), 3 * (heads,))

  return make


def _gated(form, **axes: int) -> Maker:
  """A form of the memory with gates, each of so many axes of [b s h d].

  Args:
    form: the form.
    axes: of each gate; `beta` is one gate for both writing and erasing.
  """

  def run(q, k, v, gates):
    gates = dict(gates)
    if "beta" in gates:
      gates["p_w"] = gates["p_e"] = gates.pop("beta")
    return form(q, k, v, **gates)

  def make(devices):
    place = OnOne(devices[0])
    gates = {name: _array(FORM[:n], place) for name, n in axes.items()}
    return Program(run, (*3 * [_array(FORM, place)], gates))

  return make


def _several_writes(n: int) -> Maker:
  """The memory with n writes per token."""

  def make(devices):
    place, (b, s, *heads) = OnOne(devices[0]), FORM
    writes = _array((b, s, n, *heads), place)
    arguments = (_array(FORM, place), writes, writes)
    return Program(nam_jax.memory_several_writes, arguments)

  return make


def _sharded(form, *others: PartitionSpec) -> Maker:
  """A form whose tokens are split over all devices.

  Args:
    form: takes queries, keys and values, and the name of the axis.
    others: where the results after the first are.
  """

  def make(devices):
    mesh, tokens = Mesh(np.array(devices), "d"), PartitionSpec(None, "d")
    split = jax.shard_map(
      functools.partial(form, axis_name="d"),
      mesh=mesh,
      in_specs=tokens,
      out_specs=(tokens, *others) if others else tokens,
    )
    return Program(split, 3 * (_array(FORM, NamedSharding(mesh, tokens)),))

  return make


def _layer(layer: nn.Module, shape: tuple[int, ...]) -> Maker:
  """A layer; its parameters are arguments too."""

  def run(params, x):
    return layer.apply({"params": params}, x)

  def make(devices):
    place = OnOne(devices[0])
    x = _array(shape, place)
    params = jax.eval_shape(layer.init, jax.random.key(0), x)["params"]
    return Program(
      run, (jax.tree.map(lambda leaf: _array(leaf.shape, place), params), x)
    )

  return make


def _attention(layer: nn.Module) -> Maker:
  b, s, heads, width = FORM
  return _layer(layer, (b, s, heads * width))


def _machine(layer: nn.Module) -> Maker:
  return _layer(layer, MACHINE)


_HEADS, _WIDTH = FORM[2], MACHINE[2]
_ERASE = functools.partial(nam_jax.NAMAttention, _HEADS, "erase")
_PAPER = {"p_r": 3, "p_w": 3, "p_e": 3}
_FAMILY = {
  "deltanet": {"beta": 3},
  "gated_deltanet": {"beta": 3, "log_decay": 3},
  "kda": {"beta": 3, "log_decay": 4},
  "gated_deltanet2": {"p_w": 4, "p_e": 4, "log_decay": 4},
}
PROGRAMS: dict[str, Maker] = {
  "memory": _gated(nam_jax.memory, **_PAPER),
  **{
    f"memory as {name}": _gated(nam_jax.memory, **gates)
    for name, gates in _FAMILY.items()
  },
  "memory as gla": _gated(
    functools.partial(nam_jax.memory, p_e=0), log_decay=4
  ),
  "memory_several_writes": _several_writes(2),
  "memory_chunked": _gated(nam_jax.memory_chunked, **_PAPER),
  "memory_scan": _gated(nam_jax.memory_scan, **_PAPER),
  "memory_sharded": _sharded(nam_jax.memory_sharded, PartitionSpec()),
  "outer_product_attention": _plain(nam_jax.outer_product_attention),
  "outer_product_attention(causal=True)": _plain(
    nam_jax.outer_product_attention, causal=True
  ),
  "outer_product_attention_sharded": _sharded(
    nam_jax.outer_product_attention_sharded
  ),
  "linear_attention": _plain(nam_jax.linear_attention),
  "linear_attention(causal=True)": _plain(
    nam_jax.linear_attention, causal=True
  ),
  "NAMAttention": _attention(nam_jax.NAMAttention(_HEADS)),
  'NAMAttention("causal")': _attention(nam_jax.NAMAttention(_HEADS, "causal")),
  'NAMAttention("erase")': _attention(_ERASE()),
  'NAMAttention(**PRESETS["gated_deltanet2"])': _attention(
    nam_jax.NAMAttention(_HEADS, **nam_jax.PRESETS["gated_deltanet2"])
  ),
  "LRU": _attention(nam_jax.LRU()),
  "SelfAttention": _attention(nam_jax.SelfAttention(_HEADS)),
  "TransformerEncoder": _attention(
    nam_jax.TransformerEncoder(_ERASE, num_layers=2, mlp_dim=512)
  ),
  "LSAM": _machine(nam_jax.LSAM(_WIDTH, num_heads=_HEADS)),
  "NAMTuringMachine": _machine(nam_jax.NAMTuringMachine(_HEADS)),
  "LSTM": _machine(nam_jax.LSTM(_WIDTH)),
  "LSTMAttention": _machine(nam_jax.LSTMAttention()),
  "DNC": _machine(nam_jax.DNC()),
  "UniversalTransformer": _machine(
    nam_jax.UniversalTransformer(_ERASE, num_steps=4, mlp_dim=128)
  ),
}
