"""What the sequence forms of the memory share: checks, gates, masks, types.

With what is written, x = p_w v, what is erased, e = p_e k, and the decay
a = exp(log_decay), one step of every form is

  M <- M diag(a),   u = x - M e,   M <- M + u k^T,   r = M q,   output = p_r r.
"""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from nam_jax.ops import precision
from nam_jax.ops.masks import Mask, check_mask, hide

Gate = Float[Array, "b s h"] | Float[Array, ""] | float | int
KeyGate = Gate | Float[Array, "b s h k"]  # or one per channel of the keys
ValueGate = Gate | Float[Array, "b s h v"]  # or one per channel of the values
SegmentIds = Int[Array, "b s"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def gates_by_name(form: Callable[_P, _R]) -> Callable[_P, _R]:
  """Tells callers that pass gates by position how to name them."""

  @functools.wraps(form)
  def checked(*args: _P.args, **kwargs: _P.kwargs) -> _R:
    if len(args) > 3:
      raise TypeError(
        f"gates are keyword arguments: {checked.__name__}(q, k, v, p_r=..., "
        f"p_w=..., p_e=...), got {len(args)} positional arguments"
      )
    return form(*args, **kwargs)

  return checked


class Operands(NamedTuple):
  """A sequence of reads and writes with gates and mask folded in."""

  q: Float[Array, "b s h k"]
  k: Float[Array, "b s h k"]
  x: Float[Array, "b s h v"]
  e: Float[Array, "b s h k"] | None  # None: nothing is ever erased
  log_decay: Float[Array, "b s h *k"] | None  # one a head, or one a channel
  memory: Float[Array, "b h v k"]


def fold(
  q, k, v, gates, initial_memory=None, mask=None, segment_ids=None
) -> Operands:
  """Checks the arguments of a sequence form; folds write gates and mask in.

  A masked token has q = k = x = e = log_decay = 0 and so leaves the memory as
  it is, whatever stood there. The gates are p_r, p_w, p_e, erase_key and
  log_decay.
  """
  p_r, p_w, p_e, erase_key, log_decay = gates
  _check(q, k, v, erase_key, initial_memory, mask, segment_ids)
  check_gate("p_r", p_r, v.shape, channels=False)
  check_gate("p_w", p_w, v.shape)
  check_gate("p_e", p_e, k.shape, most=2.0)
  check_log_decay(log_decay, k.shape)
  dtype = precision.accumulator(v.dtype)
  erase_key = k if erase_key is None else erase_key
  q, k, v, erase_key = (
    hide(array, mask).astype(dtype) for array in (q, k, v, erase_key)
  )
  if initial_memory is None:
    b, _, h, _ = k.shape
    shape = (b, h, v.shape[-1], k.shape[-1])
    initial_memory = jnp.zeros_like(v, shape=shape)
  e = None if is_zero(p_e) else scale(p_e, erase_key, mask)
  if is_zero(log_decay):
    log_decay = None
  if log_decay is not None:
    log_decay = _spread(jnp.asarray(log_decay, dtype), k.shape[:3])
    log_decay = hide(log_decay, mask)
  x = scale(p_w, v, mask)
  return Operands(q, k, x, e, log_decay, initial_memory.astype(dtype))


def changes(segment_ids: SegmentIds) -> Bool[Array, "b s 1 1"]:
  """Whether a token is of another sequence than the one before it."""
  changed = segment_ids[:, 1:] != segment_ids[:, :-1]
  changed = jnp.pad(changed, ((0, 0), (1, 0)))
  return changed[:, : segment_ids.shape[1], None, None]


def is_first(segment_ids: SegmentIds, reverse: bool) -> Bool[Array, "b s 1 1"]:
  """Whether a token is the first of its sequence, but for the first of all."""
  changed = changes(segment_ids)
  return jnp.roll(changed, -1, axis=1) if reverse else changed


def is_zero(gate: KeyGate | None) -> bool:
  """Whether a gate does nothing: known only for the plain number 0."""
  return isinstance(gate, int | float) and gate == 0


def scale(
  gate: KeyGate | ValueGate, array: Float[Array, "b s h d"], mask: Mask | None
) -> Float[Array, "b s h d"]:
  """The array times a gate: a number, one per head, or one per channel."""
  gate = jnp.asarray(gate, array.dtype)
  if gate.ndim == 0:
    return gate * array
  gate = hide(gate, mask)
  return (gate[..., None] if gate.ndim == 3 else gate) * array


def _spread(gate, shape):
  """A gate as [b s h 1], or as [b s h k] if it has channels."""
  if gate.ndim == 0:
    gate = jnp.broadcast_to(gate, shape)
  return gate[..., None] if gate.ndim == 3 else gate


def outputs(
  reads: Float[Array, "b s h v"], p_r: Gate, mask: Mask | None, dtype
) -> Float[Array, "b s h v"]:
  """p_r r, in the type of the inputs."""
  return scale(p_r, hide(reads, mask), mask).astype(dtype)


def check_gate(
  name: str,
  gate,
  shape: tuple[int, ...],
  *,
  channels: bool = True,
  least: float = 0.0,
  most: float = 1.0,
) -> None:
  """Checks that a gate is a number in range, or has one of its shapes.

  Args:
    name: What the gate is called in the message.
    gate: The gate; None is always right.
    shape: That of an array with one gate per channel.
    channels: Whether there may be one per channel.
    least: The least number it may be.
    most: The greatest.
  """
  if gate is None:
    return
  if isinstance(gate, int | float):
    if not least <= gate <= most:
      bounds = f"lie in [{least:g}, {most:g}]"
      bounds = "be zero or less" if most == 0 else bounds
      raise ValueError(f"{name} must {bounds}, got {gate}")
    return
  allowed = [shape[:3], shape] if channels else [shape[:3]]
  if gate.ndim != 0 and gate.shape not in allowed:
    raise ValueError(
      f"{name} must be a scalar or have shape"
      f" {' or '.join(map(str, allowed))} (batch, sequence, heads"
      f"{', channels' if channels else ''}), got {gate.shape}"
    )


def check_log_decay(log_decay, shape: tuple[int, ...]) -> None:
  """Checks a log decay, zero or less, for keys of this shape."""
  check_gate("log_decay", log_decay, shape, least=-math.inf, most=0.0)


def check_heads(q, k, v, mask) -> None:
  """Checks that q, k, v are [b s h *] of one sequence, and mask is [b s]."""
  for name, array in (("q", q), ("k", k), ("v", v)):
    if array.ndim != 4:
      raise ValueError(
        f"{name} must have 4 axes (batch, sequence, heads, width), got shape"
        f" {array.shape}"
      )
  if q.shape != k.shape:
    raise ValueError(f"q and k must agree, got {q.shape} and {k.shape}")
  if v.shape[:3] != k.shape[:3]:
    raise ValueError(
      "v and k must agree in batch, sequence and heads, got"
      f" {v.shape} and {k.shape}"
    )
  check_mask(mask, k.shape[:2])


def _check(q, k, v, erase_key, initial_memory, mask, segment_ids) -> None:
  check_heads(q, k, v, mask)
  if erase_key is not None and erase_key.shape != k.shape:
    raise ValueError(
      f"erase_key and k must agree, got {erase_key.shape} and {k.shape}"
    )
  b, _, h, width = k.shape
  expected = (b, h, v.shape[-1], width)
  if initial_memory is not None and initial_memory.shape != expected:
    raise ValueError(
      f"initial_memory must have shape {expected} (batch, heads, value width,"
      f" key width), got {initial_memory.shape}"
    )
  if segment_ids is not None and segment_ids.shape != k.shape[:2]:
    raise ValueError(
      f"segment_ids must have shape {k.shape[:2]} (batch, sequence), got"
      f" {segment_ids.shape}"
    )
