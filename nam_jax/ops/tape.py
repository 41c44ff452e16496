"""The NAM Turing machine's tape: a memory whose keys are head positions.

A tape of n cells is a memory T [v, n]; a head is a vector in R^n, at cell i
when it is the i-th basis vector. A key tape K [k, n] is written beside it. At
each token (paper, section NAM Turing Machine)

  T' = WR(T, H_w, x, p_w, p_e),   K' = WR(K, H_w, key, p_w, p_e)
  R = RD(T', H_r, p_r)
  found = RD(K'^T, query, 1)
  H' = sum_a p_a rule_a(H, found)    for both heads; JUMP is found itself

The paper prints R = RD(T, ...); its released code reads the written tape, as
LSAM does, and so do we: a machine can read what it has just written. Heads are
scaled to unit length after a move, or left as the paper's raw sum.

All controls are known before the loop. The backward pass is written by hand and
undoes the writes instead of storing tapes; the rules, which may be the user's,
are differentiated by JAX.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from nam_jax.ops import memory, normalize, sequence, undo

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
  lambda heads, found: jnp.broadcast_to(found[None], heads.shape),
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


@functools.partial(jax.jit, static_argnames=("transitions", "normalize_heads"))
def tape_scan(
  controls: Controls,
  tape: Tape,
  *,
  transitions: tuple[Transition, ...] = TRANSITIONS,
  normalize_heads: bool = True,
  mask: Bool[Array, "b s"] | None = None,
) -> tuple[Float[Array, "b s h v"], Tape, Float[Array, "b s 2 h n"]]:
  """Runs the machine over a sequence of controls.

  A masked token writes nothing, moves no head and puts out zero.

  Returns:
    The outputs in the type of the values, the tape afterwards, and the heads as
    they were when each token was written and read.
  """
  dtype = tape.values.dtype
  wide = Controls(*(array.astype(dtype) for array in controls))
  x_values = sequence.hide(memory.scale(wide.p_w, wide.value), mask)
  x_keys = sequence.hide(memory.scale(wide.p_w, wide.key), mask)
  p_e = sequence.hide(wide.p_e[..., None], mask)
  tokens = [
    jnp.moveaxis(array, 1, 0) for array in (x_values, x_keys, wide.query, p_e)
  ]
  tokens.append(jnp.moveaxis(wide.actions, 2, 0))
  tokens.append(None if mask is None else jnp.moveaxis(mask, 1, 0))
  move = functools.partial(_move, transitions, normalize_heads)
  reads, heads, tape = _scan(move, tuple(tokens), tape)
  reads = jnp.moveaxis(reads, 0, 1)
  outputs = sequence.outputs(reads, wide.p_r, mask, controls.value.dtype)
  return outputs, tape, jnp.moveaxis(heads, 2, 0)


def _move(transitions, normalize_heads, heads, found, actions, real):
  """The weighted sum of where each transition would take the heads."""
  moved = sum(
    actions[..., i, None] * transition.rule(heads, found)
    for i, transition in enumerate(transitions)
  )
  moved = normalize.unit(moved) if normalize_heads else moved
  if real is None:
    return moved
  return jnp.where(real[None, :, None, None], moved, heads)


def _step(move, carry, token):
  x_values, x_keys, query, p_e, actions, real = token
  T, K, heads = carry
  r_head, w_head = heads
  T, write_values = undo.write(T, x_values, w_head, p_e)
  K, write_keys = undo.write(K, x_keys, w_head, p_e)
  found = undo.match(K, query)
  moved = move(heads, found, actions, real)
  saved = (heads, found, write_values.old, write_keys.old)
  return (T, K, moved), (undo.read(T, r_head), saved)


def _step_back(move, carry, token):
  T, K, dT, dK, d_moved = carry
  (x_values, x_keys, query, p_e, actions, real), saved, d_read, d_seen = token
  heads, found, old_values, old_keys = saved
  r_head, w_head = heads
  _, pull = jax.vjp(lambda *args: move(*args, real), heads, found, actions)
  d_heads, d_found, d_actions = pull(d_moved)
  dr_head = undo.match(T, d_read)
  d_query = undo.read(K, d_found)
  write = undo.Write(x_values, w_head, p_e, old_values)
  T, dT, values = undo.undo(T, dT, d_read, r_head, write)
  write = undo.Write(x_keys, w_head, p_e, old_keys)
  K, dK, keys = undo.undo(K, dK, query, d_found, write)
  d_heads = d_heads + d_seen + jnp.stack([dr_head, values.k + keys.k])
  grads = (values.x, keys.x, d_query, values.p_e + keys.p_e, d_actions)
  return (T, K, dT, dK, d_heads), grads


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _scan(move, tokens, tape):
  return _scan_forward(move, tokens, tape)[0]


def _scan_forward(move, tokens, tape):
  step = functools.partial(_step, move)
  start = (undo.pending(tape.values), undo.pending(tape.keys), tape.heads)
  (T, K, heads), (reads, saved) = lax.scan(step, start, tokens)
  tape = Tape(undo.settle(T), undo.settle(K), heads)
  return (reads, saved[0], tape), (tokens, saved, tape)


def _scan_backward(move, residuals, gradients):
  tokens, saved, tape = residuals
  d_reads, d_seen, d_tape = gradients
  step = functools.partial(_step_back, move)
  start = (
    undo.pending(tape.values),
    undo.pending(tape.keys),
    undo.pending(d_tape.values, 2),
    undo.pending(d_tape.keys, 2),
    d_tape.heads,
  )
  (_, _, dT, dK, d_heads), grads = lax.scan(
    step, start, (tokens, saved, d_reads, d_seen), reverse=True
  )
  return (*grads, None), Tape(undo.settle(dT), undo.settle(dK), d_heads)


_scan.defvjp(_scan_forward, _scan_backward)
