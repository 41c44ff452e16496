"""A whole sequence of reads and writes, token by token.

`memory_scan` is the definition: `lax.scan` over write-then-read. Its gradient
is written by hand. A write is a rank-one update, M' = M + u k^T, and is undone
by subtracting it again, so the backward pass walks back in time with one memory
instead of storing one per token. The memory at the end of every segment of up
to `_SEGMENT` tokens is kept, so that rounding errors never build up over more.

Emptying a memory between packed sequences cannot be undone. Those get JAX's own
gradient, which recomputes one segment at a time.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Shaped

from nam_jax.ops import sequence, undo
from nam_jax.ops.masks import Mask
from nam_jax.ops.sequence import Gate, SegmentIds

_SEGMENT = 128


@sequence.gates_by_name
def memory_scan(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b s h k"],
  v: Float[Array, "b s h v"],
  *,
  p_r: Gate = 1.0,
  p_w: Gate = 1.0,
  p_e: Gate = 1.0,
  initial_memory: Float[Array, "b h v k"] | None = None,
  mask: Mask | None = None,
  reverse: bool = False,
  segment_ids: SegmentIds | None = None,
) -> tuple[Float[Array, "b s h v"], Float[Array, "b h v k"]]:
  """M_t = WR(M_(t-1), k_t, v_t, p_w, p_e), o_t = RD(M_t, q_t, p_r) for all t.

  Args:
    q: Unit queries.
    k: Unit keys.
    v: Values.
    p_r: Read probability, one number or one per token and head.
    p_w: Write probability, likewise.
    p_e: Erase probability, likewise.
    initial_memory: The memory before the first token; zero if not given.
    mask: True at real tokens. The others write nothing and read zero.
    reverse: Run from the last token to the first.
    segment_ids: Which of several sequences packed into a row a token belongs
      to: the memory is emptied wherever the number changes. `initial_memory`
      belongs to the first sequence, the final memory to the last.

  Returns:
    The outputs, in the type of v, and the memory after the last step, in
    float32 or wider. Passing it on as `initial_memory` continues the sequence.
  """
  ops = sequence.fold(q, k, v, p_r, p_w, p_e, initial_memory, mask, segment_ids)
  reads, memory = _run(ops, segment_ids, reverse)
  return sequence.outputs(reads, p_r, mask, v.dtype), memory


@functools.partial(jax.jit, static_argnums=2)
def _run(ops: sequence.Operands, segment_ids, reverse: bool):
  q, k, x, p_e, M = ops
  p_e = jnp.zeros_like(k[..., :1]) if p_e is None else p_e
  tokens = [_split(array) for array in (q, k, x, p_e)]
  if segment_ids is None:
    reads, M = _scan(*tokens, M, reverse)
  else:
    reads, M = _scan_packed(tokens, _is_first(segment_ids, reverse), M, reverse)
  reads = jnp.moveaxis(lax.collapse(reads, 0, 2), 0, 1)
  return reads[:, : q.shape[1]], M


def _is_first(segment_ids, reverse):
  """Whether each token starts a sequence, split as the tokens are."""
  changes = segment_ids[:, 1:] != segment_ids[:, :-1]
  changes = jnp.pad(changes, ((0, 0), (0, 1) if reverse else (1, 0)))
  return _split(changes[:, : segment_ids.shape[1], None, None])


def _scan_packed(tokens, is_first, M, reverse):
  @jax.checkpoint
  def segment(M, tokens):
    return lax.scan(_plain_step, M, tokens, reverse=reverse)

  M, reads = lax.scan(segment, M, (*tokens, is_first), reverse=reverse)
  return reads, M


def _plain_step(M, token):
  q, k, x, p_e, *is_first = token
  for first in is_first:
    M = jnp.where(first[..., None], 0, M)
  u = x - p_e * undo.at(M, k)
  M = M + u[..., :, None] * k[..., None, :]
  return M, undo.at(M, q)


def _split(array: Shaped[Array, "b s h d"]) -> Shaped[Array, "z c b h d"]:
  """Time first, in equal segments; the last is padded with empty tokens."""
  s = array.shape[1]
  segments = max(1, -(-s // _SEGMENT))
  array = jnp.moveaxis(array, 1, 0)
  array = jnp.pad(array, ((0, -s % segments), (0, 0), (0, 0), (0, 0)))
  length = array.shape[0] // segments
  return array.reshape(segments, length, *array.shape[1:])


def _step(memory, token):
  q, k, x, p_e = token
  M = undo.settle(memory)
  old = undo.at(M, k)
  u = x - p_e * old
  # M' q = M q + u (k . q) does not have to wait for M'.
  read = undo.at(M, q) + u * undo.dot(k, q)
  return memory.add(M, (u, k)), (read, old)


def _step_back(carry, token):
  memory, gradient = carry
  q, k, u, p_e, d_read = token
  M = undo.settle(memory, (-u, k))
  dq = undo.along(M, d_read) + k * undo.dot(u, d_read)
  G = undo.settle(gradient, (d_read, q))
  dx, dk, d_old = undo.back(G, u, k, p_e)
  dk = dk + undo.along(M, d_old)
  return (memory.add(M), gradient.add(G, (d_old, k))), (dq, dk, dx)


@functools.partial(jax.custom_vjp, nondiff_argnums=(5,))
def _scan(q, k, x, p_e, M, reverse):
  # Without a gradient the plainest loop is the fastest.
  tokens = (lax.collapse(a, 0, 2) for a in (q, k, x, p_e))
  M, reads = lax.scan(_plain_step, M, tuple(tokens), reverse=reverse)
  return reads.reshape(x.shape), M


def _scan_forward(q, k, x, p_e, M, reverse):
  def segment(M, tokens):
    memory, (reads, old) = lax.scan(
      _step, undo.pending(M), tokens, reverse=reverse
    )
    M = undo.settle(memory)
    return M, (reads, old, M)

  tokens = (q, k, x, p_e)
  M, (reads, old, ends) = lax.scan(segment, M, tokens, reverse=reverse)
  return (reads, M), (tokens, old, ends)


def _scan_backward(reverse, residuals, gradients):
  (q, k, x, p_e), old, ends = residuals
  d_reads, dM = gradients

  def segment(dM, operands):
    *tokens, M = operands
    start = (undo.pending(M, 0), undo.pending(dM))
    (_, gradient), grads = lax.scan(
      _step_back, start, tuple(tokens), reverse=not reverse
    )
    return undo.settle(gradient), grads

  tokens = (q, k, x - p_e * old, p_e, d_reads)
  dM, (dq, dk, dx) = lax.scan(segment, dM, (*tokens, ends), reverse=not reverse)
  return dq, dk, dx, -undo.dot(dx, old), dM


_scan.defvjp(_scan_forward, _scan_backward)
