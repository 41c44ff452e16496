"""A whole sequence of reads and writes, token by token.

`memory_scan` is the definition: `lax.scan` over write-then-read. Its gradient
is written by hand. A write is a rank-one update, M' = M + u k^T, and is undone
by subtracting it again, so the backward pass walks back in time with one memory
instead of storing one per token. The memory at the end of every segment of up
to `_SEGMENT` tokens is kept, so that rounding errors never build up over more.

Decay cannot be undone without dividing by it, nor can emptying a memory between
packed sequences. These get JAX's own gradient, which recomputes one segment at
a time.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Shaped

from nam_jax.ops import hardware, sequence, undo, varying
from nam_jax.ops.masks import Mask
from nam_jax.ops.sequence import Gate, KeyGate, SegmentIds, ValueGate

_SEGMENT = 128


@sequence.gates_by_name
def memory_scan(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b s h k"],
  v: Float[Array, "b s h v"],
  *,
  p_r: Gate = 1.0,
  p_w: ValueGate = 1.0,
  p_e: KeyGate = 1.0,
  erase_key: Float[Array, "b s h k"] | None = None,
  log_decay: KeyGate | None = None,
  initial_memory: Float[Array, "b h v k"] | None = None,
  mask: Mask | None = None,
  segment_ids: SegmentIds | None = None,
  reverse: bool = False,
) -> tuple[Float[Array, "b s h v"], Float[Array, "b h v k"]]:
  """M_t = WR(M_(t-1), k_t, v_t, p_w, p_e), o_t = RD(M_t, q_t, p_r) for all t.

  With decay, M_(t-1) diag(exp(log_decay_t)) takes the place of M_(t-1).

  Args:
    q: Unit queries.
    k: Unit keys.
    v: Values.
    p_r: Read probability, one number or one per token and head.
    p_w: Write probability, likewise, or one per channel of the value.
    p_e: Erase probability, likewise, or one per channel of the key. With unit
      keys and one per head it may go up to 2: more than 1 turns the sign of
      what the key held.
    erase_key: What to erase, p_e M erase_key k^T; k by default.
    log_decay: The logarithm of the decay, zero or less, one number, one per
      token and head, or one per channel of the key; None for no decay.
    initial_memory: The memory before the first token; zero if not given.
    mask: True at real tokens. The others write nothing and read zero, whatever
      they hold.
    segment_ids: Which of several sequences packed into a row a token belongs
      to: the memory is emptied wherever the number changes. `initial_memory`
      belongs to the first sequence, the final memory to the last.
    reverse: Run from the last token to the first.

  Returns:
    The outputs, in the type of v, and the memory after the last step, in
    float32 or wider. Passing it on as `initial_memory` continues the sequence.
  """
  gates = (p_r, p_w, p_e, erase_key, log_decay)
  ops = sequence.fold(q, k, v, gates, initial_memory, mask, segment_ids)
  reads, memory = _run(ops, segment_ids, reverse)
  return sequence.outputs(reads, p_r, mask, v.dtype), memory


@functools.partial(jax.jit, static_argnums=2)
def _run(ops: sequence.Operands, segment_ids, reverse: bool):
  q, k, x, e, log_decay, M = ops
  if log_decay is None and segment_ids is None:
    cut = form(reverse, cut=True) if undo.is_cut(k.shape[-1]) else None
    return hardware.differentiable(form(reverse), cut)(*ops, None)
  is_first = None
  if segment_ids is not None:
    is_first = sequence.is_first(segment_ids, reverse)
  tokens, M = varying.alike((q, k, x, e, log_decay, is_first), M)
  reads, M = _recomputing(jax.tree.map(_split, tokens), M, reverse)
  return _join(reads, q.shape[1]), M


def _split(array: Shaped[Array, "b s h d"]) -> Shaped[Array, "z c b h d"]:
  """Time first, in equal segments; the last is padded with empty tokens."""
  s = array.shape[1]
  segments = max(1, -(-s // _SEGMENT))
  array = jnp.moveaxis(array, 1, 0)
  array = jnp.pad(array, ((0, -s % segments), (0, 0), (0, 0), (0, 0)))
  length = array.shape[0] // segments
  return array.reshape(segments, length, *array.shape[1:])


def _join(
  array: Shaped[Array, "z c b h d"], s: int
) -> Shaped[Array, "b s h d"]:
  return jnp.moveaxis(lax.collapse(array, 0, 2), 0, 1)[:, :s]


def _plain_step(M, token):
  q, k, x, e, log_decay, is_first = token
  if log_decay is not None:
    M = jnp.exp(log_decay)[..., None, :] * M
  if is_first is not None:
    M = jnp.where(is_first[..., None], 0, M)
  u = x if e is None else x - undo.at(M, e)
  M = M + u[..., :, None] * k[..., None, :]
  return M, undo.at(M, q)


def _recomputing(tokens, M, reverse):
  """The loop with JAX's own gradient, one segment at a time."""

  @jax.checkpoint
  def segment(M, tokens):
    return lax.scan(_plain_step, M, tokens, reverse=reverse)

  M, reads = lax.scan(segment, M, tokens, reverse=reverse)
  return reads, M


def form(reverse: bool, cut: bool = False) -> hardware.Form:
  """The loop whose backward pass undoes the writes.

  Its operands are those of `chunked.form`, without decays and numbers.

  Args:
    reverse: Whether to run from the last token to the first.
    cut: Whether to cut the rows of memories into pieces; see `undo`.
  """

  def alone(*operands):
    # Without a gradient the plainest loop is the fastest.
    *tokens, _, M, _ = operands
    tokens = jax.tree.map(lambda a: jnp.moveaxis(a, 1, 0), tokens)
    M, reads = lax.scan(_plain_step, M, (*tokens, None, None), reverse=reverse)
    return jnp.moveaxis(reads, 0, 1), M

  def forward(*operands):
    *tokens, _, M, _ = operands
    s = tokens[0].shape[1]
    tokens = jax.tree.map(_split, tokens)
    (reads, M), saved = _forward(reverse, cut, *tokens, M)
    return (_join(reads, s), M), saved

  def backward(saved, gradients):
    d_reads, dM = gradients
    s = d_reads.shape[1]
    *grads, dM = _backward(reverse, cut, saved, (_split(d_reads), dM))
    return *jax.tree.map(lambda a: _join(a, s), grads), None, dM, None

  return hardware.Form(forward, backward, alone)


def _forward(reverse, cut, q, k, x, e, M):
  def step(memory, token):
    q, k, x, e = token
    M = undo.settle(memory)
    u = x if e is None else x - undo.at(M, e)
    # M' q = M q + u (k . q) does not have to wait for M'.
    read = undo.at(M, q) + u * undo.dot(k, q)
    return memory.add(M, (u, k)), (read, u)

  def segment(M, tokens):
    start = undo.pending(M, cut=cut)
    memory, (reads, u) = lax.scan(step, start, tokens, reverse=reverse)
    M = undo.settle(memory)
    return M, (reads, u, M)

  M, (reads, u, ends) = lax.scan(segment, M, (q, k, x, e), reverse=reverse)
  return (reads, M), (q, k, u, e, ends)


def _backward(reverse, cut, saved, gradients):
  *tokens, ends = saved
  d_reads, dM = gradients

  def step(carry, token):
    memory, gradient = carry
    q, k, u, e, d_read = token
    M = undo.settle(memory, (-u, k))
    dq = undo.along(M, d_read) + k * undo.dot(u, d_read)
    G = undo.settle(gradient, (d_read, q))
    du, dk, de, erased = undo.at(G, k), undo.along(G, u), None, ()
    if e is not None:
      de, erased = -undo.along(M, du), ((-du, e),)
    return (memory.add(M), gradient.add(G, *erased)), (dq, dk, du, de)

  def segment(dM, operands):
    *tokens, M = operands
    products = 0 if saved[3] is None else 1
    start = undo.pending(M, 0, cut=cut), undo.pending(dM, products, cut=cut)
    (_, gradient), grads = lax.scan(
      step, start, tuple(tokens), reverse=not reverse
    )
    return undo.settle(gradient), grads

  dM, grads = lax.scan(
    segment, dM, (*tokens, d_reads, ends), reverse=not reverse
  )
  return *grads, dM
