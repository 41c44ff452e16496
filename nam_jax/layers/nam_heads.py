"""What NAM attention computes, for its linen and its nnx module.

`read` lets the heads write and read, `join` projects what they return back to
the tokens; between the two, a module may drop parts of it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from nam_jax.layers import (
  checks,
  decay,
  nam_settings,
  parameters,
  short_convolution,
)
from nam_jax.layers.nam_settings import Settings
from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import (
  masks,
  memory_form,
  normalize,
  outer_product,
  precision,
  several_writes,
)

_EPSILON = 1e-5  # added to the mean square in the output norm
_OUTPUT_GATES = {"sigmoid": jax.nn.sigmoid, "silu": jax.nn.silu}


class NAMState(NamedTuple):
  """What a `NAMAttention` with a convolution continues from."""

  memory: Float[Array, "b h v k"]
  tail: Float[Array, "b t c h k"]  # queries, keys, values of the last tokens


State = Float[Array, "b h v k"] | NAMState


def read(
  settings: Settings,
  params: parameters.Params,
  x: Tokens,
  state: State | None,
  mask: Mask | None,
) -> tuple[Float[Array, "b s h v"], State | None]:
  """What the heads return for every token, and the state after the last."""
  checks.check_tokens(x)
  masks.check_mask(mask, x.shape[:2])
  x = masks.hide(x, mask)
  qkv = tuple(
    parameters.project(params[name], x, settings.dtype)
    for name in ("query", "key", "value")
  )
  if settings.mode == "bidirectional":
    p_w = _shares(qkv[1].shape[:3], mask) if settings.mean_writes else 1
    heads = outer_product.outer_product_attention(*qkv, mask=mask, p_w=p_w)
  else:
    kernel = None
    if settings.convolution:
      kernel = params["short_convolution"]["kernel"][:, None]  # [w 1 c h k]
    gates = _gates(settings, params, x)
    if settings.bidirectional:
      heads = _both_ways(qkv, gates, kernel, mask)
    else:
      heads, state = _causal(qkv, gates, kernel, state, mask)
  if settings.output_norm:
    heads = _rms_norm(heads, params["out_norm"]["scale"])
  if settings.output_gate:
    gate = parameters.project(params["out_gate"], x, settings.dtype)
    heads = _OUTPUT_GATES[settings.output_gate](gate) * heads
  return heads, state


def join(
  settings: Settings,
  params: parameters.Params,
  heads: Float[Array, "b s h v"],
) -> Tokens:
  """Projects all heads of a token back to its width."""
  return parameters.project(params["out"], heads, settings.dtype, axes=2)


def _gates(settings, params, x) -> dict[str, Array]:
  """The gates of the memory that are computed, by name."""

  def gate(name):
    z = parameters.project(params[name], x, settings.dtype)
    return jax.nn.sigmoid(z)

  gates = {}
  if settings.mode == "erase" and settings.tied_gates:
    p = settings.max_erase * gate("gate")
    gates = {"p_w": p, "p_e": p}
  elif settings.mode == "erase":
    p_e = settings.max_erase * gate("erase_gate")
    gates = {"p_w": gate("write_gate"), "p_e": p_e}
  if settings.decay:
    gates["log_decay"] = _log_decay(settings, params, x)
  return gates


def _log_decay(settings, params, x):
  if settings.decay_from == "token":
    return decay.from_token(params["decay_gate"], x, settings.dtype)
  if settings.decay_from == "learned":
    log_decay = decay.constant(params["decay_gate"])
  else:
    log_decay = nam_settings.each_way(settings, decay.retention)
    log_decay = jnp.asarray(log_decay, precision.accumulator(x.dtype))
  return jnp.broadcast_to(log_decay, (*x.shape[:2], *log_decay.shape))


def _causal(qkv, gates, kernel, state, mask):
  """Every token reads what was written up to and including itself."""
  if kernel is None:
    return _write_and_read(qkv, gates, state, mask)
  memory, tail = _start(qkv, kernel, state)
  mixed, tail = short_convolution.short_convolution(
    _stack(qkv), kernel, tail, mask
  )
  reads, memory = _write_and_read(
    _unstack(jax.nn.silu(mixed), qkv), gates, memory, mask
  )
  return reads, NAMState(memory, tail)


def _stack(qkv):
  """Queries and all keys and values as one array [b s c h k]."""
  q, *kv = qkv
  kv = (x[:, :, :, None] if x.ndim == q.ndim else x for x in kv)
  return jnp.moveaxis(jnp.concatenate([q[:, :, :, None], *kv], axis=3), 3, 2)


def _unstack(stack, like):
  """The parts of `_stack`, in the shapes they had."""
  n = stack.shape[2] // 2
  q, k, v = jnp.split(jnp.moveaxis(stack, 2, 3), [1, 1 + n], axis=3)
  return tuple(x.reshape(y.shape) for x, y in zip((q, k, v), like, strict=True))


def _write_and_read(qkv, gates, memory, mask):
  q, k, v = qkv
  arguments = {
    "p_w": gates.get("p_w", 1),
    "p_e": gates.get("p_e", 0),
    "log_decay": gates.get("log_decay"),
    "initial_memory": memory,
    "mask": mask,
  }
  q, k = normalize.unit(q), normalize.unit(k)
  if k.ndim == q.ndim:
    return memory_form.memory(q, k, v, **arguments)

  def writes_first(array):  # [b s h n ...] -> [b s n h ...]
    return jnp.swapaxes(array, 2, 3)

  for name in ("p_w", "p_e"):
    arguments[name] = writes_first(arguments[name])
  return several_writes.memory_several_writes(
    q, writes_first(k), writes_first(v), **arguments
  )


def _start(qkv, kernel, state):
  """The memory and the tail that a layer with a convolution starts from."""
  b, _, h, k = qkv[0].shape
  shape = (b, kernel.shape[0] - 1, kernel.shape[2], h, k)
  if state is None:
    return None, jnp.zeros_like(qkv[0], shape=shape)
  if not isinstance(state, NAMState):
    raise ValueError(
      "with a convolution, the state to continue from is a NAMState (memory,"
      f" tail), got {type(state).__name__}"
    )
  checks.check_state("state", state, ((b, h, k, k), shape))
  return state


def _both_ways(qkv, gates, kernel, mask):
  """The second half of the heads runs from the last token to the first.

  The two directions run at the same time, as rows of one batch.
  """

  def fold(array):  # [b s h ...] -> [2b s h/2 ...]
    ahead, back = jnp.split(array, 2, axis=2)
    return jnp.concatenate([ahead, jnp.flip(back, axis=1)])

  rows = qkv[0].shape[0]
  if kernel is not None:
    ahead, back = jnp.split(kernel, 2, axis=3)
    kernel = jnp.repeat(jnp.concatenate([ahead, back], axis=1), rows, axis=1)
  if mask is not None:
    mask = jnp.concatenate([mask, jnp.flip(mask, axis=1)])
  qkv, gates = jax.tree.map(fold, (qkv, gates))
  reads, _ = _causal(qkv, gates, kernel, None, mask)
  ahead, back = jnp.split(reads, 2)
  return jnp.concatenate([ahead, jnp.flip(back, axis=1)], axis=2)


def _rms_norm(heads, scale):
  """Every head divided by its root mean square, times a learned scale."""
  wide = precision.widen(heads)
  square = jnp.mean(wide * wide, axis=-1, keepdims=True)
  wide = wide * jax.lax.rsqrt(square + _EPSILON)
  return (wide * scale.astype(wide.dtype)[None, None, None]).astype(heads.dtype)


def _shares(shape, mask):
  """One over the number of real tokens, for each token and head [b s h]."""
  if mask is None:
    return 1 / shape[1]
  count = jnp.maximum(jnp.sum(mask, axis=1, dtype=jnp.float32), 1)
  return jnp.broadcast_to((1 / count)[:, None, None], shape)
