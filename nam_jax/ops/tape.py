"""The NAM Turing machine's tape: a memory whose keys are head positions.

A tape of n cells is a memory T [v, n]; a head is a vector in R^n, at cell i
when it is the i-th basis vector. A key tape K [k, n] is written with it. At
each token (paper, section NAM Turing Machine)

  T' = WR(T, H_w, x, p_w, p_e),   K' = WR(K, H_w, key, p_w, p_e)
  R = RD(T', H_r, p_r)
  found = RD(K'^T, query, 1)
  H' = sum_a p_a rule_a(H, found)    for both heads; JUMP is found itself

The paper prints R = RD(T, ...); its released code reads the tape after the
write, as LSAM does, and so do we: a machine can read what it has just written.
Heads are scaled to unit length after a move, or left as the paper's raw sum.
A mixture of moves blurs a head, a little more with every token; `sharpen`
undoes this: entries are raised to a power, as in the Neural Turing Machine
(Graves et al. 2014, equation 9), before heads are scaled.

All controls are known before the loop. The backward pass is written by hand and
stores no tape per token, only one per segment (`nam_jax.ops.segments`); the
rules, which users may add to, are differentiated by JAX.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from nam_jax.ops import (
  masks,
  memory,
  normalize,
  segments,
  sequence,
  undo,
  varying,
)

Heads = Float[Array, "2 b h n"]  # the read heads, then the write heads
Rule = Callable[[Heads, Float[Array, "b h n"]], Heads]


class Transition(NamedTuple):
  """A way for the heads to move: any differentiable rule(heads, found).

  heads is [2, b, h, n] (read heads, write heads); found [b, h, n] says how well
  each cell's key matches the query. The result has the shape of heads.
  """

  name: str
  rule: Rule
  uses_found: bool = False  # whether the machine needs keys and a query for it


LEFT = Transition("left", lambda heads, found: jnp.roll(heads, -1, -1))
RIGHT = Transition("right", lambda heads, found: jnp.roll(heads, 1, -1))
NO_OP = Transition("no-op", lambda heads, found: heads)
JUMP = Transition(
  "jump",
  lambda heads, found: jnp.stack([found, found]),
  uses_found=True,
)
TRANSITIONS = (LEFT, RIGHT, NO_OP, JUMP)


class Tape(NamedTuple):
  """The state of a NAM Turing machine, in float32 or wider."""

  values: Float[Array, "b h v n"]
  keys: Float[Array, "b h k n"]  # k = 0 where no transition uses them
  heads: Heads


class Controls(NamedTuple):
  """What the controller tells the machine, for every token."""

  value: Float[Array, "b s h v"]
  key: Float[Array, "b s h k"]  # unit vectors
  query: Float[Array, "b s h k"]  # unit vectors
  p_r: Float[Array, "b s h"]
  p_w: Float[Array, "b s h"]
  p_e: Float[Array, "b s h"]
  actions: Float[Array, "2 b s h a"]  # probabilities, of read and write heads


def blank_tape(b: int, h: int, v: int, k: int, n: int, dtype) -> Tape:
  """An empty tape of n cells with all heads on the first one."""
  return rewind(
    Tape(
      values=jnp.zeros((b, h, v, n), dtype),
      keys=jnp.zeros((b, h, k, n), dtype),
      heads=jnp.zeros((2, b, h, n), dtype),
    )
  )


def rewind(tape: Tape) -> Tape:
  """The same tape with all heads on the first cell."""
  return tape._replace(heads=jnp.zeros_like(tape.heads).at[..., 0].set(1))


@functools.partial(
  jax.jit, static_argnames=("transitions", "normalize_heads", "sharpen")
)
def tape_scan(
  controls: Controls,
  tape: Tape,
  *,
  transitions: tuple[Transition, ...] = TRANSITIONS,
  normalize_heads: bool = True,
  sharpen: float = 1.0,
  mask: Bool[Array, "b s"] | None = None,
) -> tuple[Float[Array, "b s h v"], Tape, Float[Array, "b s 2 h n"]]:
  """Runs the machine over a sequence of controls.

  A masked token writes nothing, moves no head and outputs zero.

  Returns:
    The outputs in the type of the values, the tape afterwards, and the heads as
    they were when each token was written and read.
  """
  b, s = controls.value.shape[:2]
  masks.check_mask(mask, (b, s))
  dtype = tape.values.dtype
  wide = Controls(*(array.astype(dtype) for array in _hide(controls, mask)))
  tokens = _Tokens(
    x_values=_time_first(memory.scale(wide.p_w, wide.value)),
    x_keys=_time_first(memory.scale(wide.p_w, wide.key)),
    query=_time_first(wide.query),
    p_e=_time_first(wide.p_e[..., None]),
    actions=jnp.moveaxis(wide.actions, 2, 0),
  )
  real = None if mask is None else _time_first(mask)
  tokens, tape, real = varying.alike(tokens, tape, real)
  tokens, real = segments.split(tokens, real)
  mix = functools.partial(_mix, transitions, sharpen)
  reads, heads, end = _scan(mix, normalize_heads, tokens, real, tape)
  reads, heads = segments.join((reads, heads), s)
  reads, heads = _time_first(reads), jnp.moveaxis(heads, 2, 0)
  outputs = sequence.outputs(reads, wide.p_r, mask, controls.value.dtype)
  return outputs, end, heads


def _hide(controls: Controls, mask) -> Controls:
  """The controls with zeros at masked tokens, so that nothing is written."""
  *others, actions = controls
  others = [masks.hide(array, mask) for array in others]
  actions = [masks.hide(array, mask) for array in actions]
  return Controls(*others, actions=jnp.stack(actions))


class _Tokens(NamedTuple):
  """The controls as the loop takes them, time first."""

  x_values: Float[Array, "s b h v"]  # p_w times the values
  x_keys: Float[Array, "s b h k"]
  query: Float[Array, "s b h k"]
  p_e: Float[Array, "s b h 1"]
  actions: Float[Array, "s 2 b h a"]


def _time_first(array):
  """[b s ...] as [s b ...], or the other way round."""
  return jnp.swapaxes(array, 0, 1)


def _mix(transitions, power, actions, heads, found):
  """The weighted sum of where each transition would take the heads."""
  mixed = sum(
    actions[..., i, None] * transition.rule(heads, found)
    for i, transition in enumerate(transitions)
  )
  return mixed if power == 1 else sharpened(mixed, power)


def sharpened(heads: Heads, power: float) -> Heads:
  """x |x|^(power - 1): large entries gain on small ones; signs stay."""
  size = jnp.where(heads == 0, 1, jnp.abs(heads))  # 0 has no such derivative
  return jnp.where(heads == 0, 0, heads * size ** (power - 1))


def _step(mix, normalized, carry, token):
  (x_values, x_keys, query, p_e, actions), real = token
  values, keys, heads = carry
  r_head, w_head = heads
  T, K = undo.settle(values), undo.settle(keys)
  old_values, old_keys = undo.at(T, w_head), undo.at(K, w_head)
  u_values, u_keys = x_values - p_e * old_values, x_keys - p_e * old_keys
  found = undo.along(K, query) + w_head * undo.dot(u_keys, query)
  moved, scale = mix(actions, heads, found), None
  if normalized:
    moved, scale = normalize.unit_and_scale(moved)
  if real is not None:
    moved = jnp.where(real[None, :, None, None], moved, heads)
  values = values.add(T, (u_values, w_head))
  keys = keys.add(K, (u_keys, w_head))
  saved = _Saved(heads, found, scale, old_values, old_keys)
  return (values, keys, moved), (undo.at(T, r_head), saved)


class _Saved(NamedTuple):
  """What the backward pass needs of a step."""

  heads: Heads
  found: Float[Array, "b h n"]
  scale: normalize.Scale | None  # of the new heads
  old_values: Float[Array, "b h v"]  # under the write head
  old_keys: Float[Array, "b h k"]


def _step_back(mix, T, K, carry, token):
  """One step back, with the `segments.Writes` of the two tapes."""
  dT, dK, moved, d_moved = carry
  tokens, saved, (u_values, u_keys), d_read, d_seen, real, before = token
  r_head, w_head = saved.heads
  d_mixed = d_moved[0] + jnp.stack(d_moved[1:])
  d_kept = [] if d_seen is None else [d_seen]
  if real is not None:
    real = real[None, :, None, None]
    d_kept.append(jnp.where(real, 0, d_mixed))
    d_mixed = jnp.where(real, d_mixed, 0)
  if saved.scale is not None:
    d_mixed = normalize.unit_back(moved, saved.scale, d_mixed)
  _, pull = jax.vjp(mix, tokens.actions, saved.heads, saved.found)
  d_actions, d_heads, d_found = pull(d_mixed)

  dr_head = T.along(before, d_read) + w_head * undo.dot(u_values, d_read)
  G = undo.settle(dT, (d_read, r_head))
  dx_values, dw_head, d_old = undo.back(G, u_values, w_head, tokens.p_e)
  dw_head = dw_head + T.along(before, d_old)
  dT = dT.add(G, (d_old, w_head))

  d_query = K.at(before, d_found) + u_keys * undo.dot(w_head, d_found)
  late, G = (tokens.query, d_found), undo.settle(dK)
  dx_keys, dk, d_old = undo.back(G, u_keys, w_head, tokens.p_e, late)
  dw_head = dw_head + dk + K.along(before, d_old)
  dK = dK.add(G, late, (d_old, w_head))

  d_heads = (sum(d_kept, d_heads), dr_head, dw_head)
  carry = (dT, dK, saved.heads, d_heads)
  return carry, (dx_values, dx_keys, d_query, d_actions)


def _is_zero(gradient):
  return isinstance(gradient, jax.custom_derivatives.SymbolicZero)


def _run(mix, normalized, cut, tokens, real, tape):
  """The forward pass over segments [z c ...]."""
  step = functools.partial(_step, mix, normalized)

  def segment(tape, tokens):
    T, K = (undo.pending(M, cut=cut) for M in (tape.values, tape.keys))
    (T, K, heads), saved = lax.scan(step, (T, K, tape.heads), tokens)
    end = Tape(undo.settle(T), undo.settle(K), heads)
    return end, (saved, (tape.values, tape.keys))

  end, ((reads, saved), starts) = lax.scan(segment, tape, (tokens, real))
  # The tape was read before the write was added.
  r_heads, w_heads = jnp.moveaxis(saved.heads, 2, 0)
  u_values = tokens.x_values - tokens.p_e * saved.old_values
  reads = reads + u_values * undo.dot(w_heads, r_heads)
  residuals = (tokens, real, saved, starts, end.heads)
  return (reads, saved.heads, end), residuals


def _run_back(mix, cut, residuals, gradients):
  tokens, real, saved, starts, last = residuals
  d_reads, d_seen, d_end = gradients
  before = segments.before(d_reads.shape[1], False, d_reads.dtype)

  def segment(carry, operands):
    moved, d_tape = carry
    T, K, tokens, saved, d_reads, *others = operands
    u_values = tokens.x_values - tokens.p_e * saved.old_values
    u_keys = tokens.x_keys - tokens.p_e * saved.old_keys
    w_heads = saved.heads[:, 1]
    T = segments.writes(T, u_values, w_heads)
    K = segments.writes(K, u_keys, w_heads)
    dT = undo.pending(d_tape.values, cut=cut)
    dK = undo.pending(d_tape.keys, 2, cut=cut)
    nothing = jnp.zeros_like(d_tape.heads[0])
    (dT, dK, moved, d_heads), grads = lax.scan(
      functools.partial(_step_back, mix, T, K),
      (dT, dK, moved, (d_tape.heads, nothing, nothing)),
      (tokens, saved, (u_values, u_keys), d_reads, *others, before),
      reverse=True,
    )
    d_heads = d_heads[0] + jnp.stack(d_heads[1:])
    d_tape = Tape(undo.settle(dT), undo.settle(dK), d_heads)
    return (moved, d_tape), grads

  (_, d_tape), grads = lax.scan(
    segment,
    (last, d_end),
    (*starts, tokens, saved, d_reads, d_seen, real),
    reverse=True,
  )
  dx_values, dx_keys, d_query, d_actions = grads
  d_p_e = -undo.dot(dx_values, saved.old_values)
  d_p_e = d_p_e - undo.dot(dx_keys, saved.old_keys)
  d_tokens = _Tokens(dx_values, dx_keys, d_query, d_p_e, d_actions)
  return d_tokens, None, d_tape


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _scan(mix, normalized, tokens, real, tape):
  run = functools.partial(_run, mix, normalized)
  n = tape.values.shape[-1]
  return undo.for_platform(run, n, tokens, real, tape)[0]


def _scan_forward(mix, normalized, *operands):
  operands = jax.tree.map(lambda primal: primal.value, operands)
  run = functools.partial(_run, mix, normalized)
  n = operands[-1].values.shape[-1]
  return undo.for_platform(run, n, *operands)


def _scan_backward(mix, normalized, residuals, gradients):
  del normalized  # scaled by saved.scale
  d_reads, d_seen, d_end = gradients
  last = residuals[-1]
  # The heads are rarely used; their gradient would be a large array of zeros.
  d_seen = None if _is_zero(d_seen) else d_seen
  d_reads, d_end = jax.tree.map(
    lambda d: jnp.zeros_like(last, shape=d.shape) if _is_zero(d) else d,
    (d_reads, d_end),
    is_leaf=_is_zero,
  )
  run = functools.partial(_run_back, mix)
  n = d_end.values.shape[-1]
  return undo.for_platform(run, n, residuals, (d_reads, d_seen, d_end))


_scan.defvjp(_scan_forward, _scan_backward, symbolic_zeros=True)
