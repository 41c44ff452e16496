"""What the sequence forms of the memory share: checks, gates, masks, types.

With the weighted value x = p_w v, one step of every form is

  u = x - p_e M k,   M' = M + u k^T,   r = M' q,   output = p_r r.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from nam_jax.ops import memory, precision
from nam_jax.ops.masks import Mask, check_mask, hide

Gate = Float[Array, "b s h"] | Float[Array, ""] | float | int
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
  p_e: Float[Array, "b s h 1"] | None  # None: nothing is ever erased
  memory: Float[Array, "b h v k"]


def fold(
  q, k, v, p_r, p_w, p_e, initial_memory, mask, segment_ids=None
) -> Operands:
  """Checks the arguments of a sequence form; folds write gates and mask in.

  A masked token has x = p_e = 0 and so leaves the memory as it is.
  """
  _check(q, k, v, initial_memory, mask, segment_ids)
  for name, gate in (("p_r", p_r), ("p_w", p_w), ("p_e", p_e)):
    check_gate(name, gate, k.shape[:3])
  dtype = precision.accumulator(v.dtype)
  q, k, v = (array.astype(dtype) for array in (q, k, v))
  if initial_memory is None:
    b, _, h, _ = k.shape
    shape = (b, h, v.shape[-1], k.shape[-1])
    initial_memory = jnp.zeros_like(v, shape=shape)
  if is_zero(p_e):
    p_e = None
  else:
    p_e = jnp.asarray(p_e, dtype)
    p_e = jnp.full_like(k, p_e, shape=k.shape[:3]) if p_e.ndim == 0 else p_e
    p_e = hide(p_e[..., None], mask)
  x = hide(memory.scale(p_w, v), mask)
  return Operands(q, k, x, p_e, initial_memory.astype(dtype))


def is_zero(p_e: Gate) -> bool:
  """Whether nothing is ever erased: known only for the plain number 0."""
  return isinstance(p_e, int | float) and p_e == 0


def outputs(
  reads: Float[Array, "b s h v"], p_r: Gate, mask: Mask | None, dtype
) -> Float[Array, "b s h v"]:
  """p_r r, zero at masked tokens, in the type of the inputs."""
  return hide(memory.scale(p_r, reads), mask).astype(dtype)


def check_gate(name: str, gate, shape: tuple[int, ...]) -> None:
  """Checks that a gate is one probability, or an array of the given shape."""
  if isinstance(gate, int | float):
    check_probability(name, gate)
  elif gate.ndim != 0 and gate.shape != shape:
    raise ValueError(
      f"{name} must be a scalar or have shape {shape} (batch, sequence,"
      f" heads), got {gate.shape}"
    )


def check_probability(name: str, p: float | int) -> None:
  """Checks that a plain number given as a probability lies in [0, 1]."""
  if not 0 <= p <= 1:
    raise ValueError(f"{name} must lie in [0, 1], got {p}")


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


def _check(q, k, v, initial_memory, mask, segment_ids) -> None:
  check_heads(q, k, v, mask)
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
