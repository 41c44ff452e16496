"""A whole sequence of reads and writes, token by token.

`memory_scan` is the definition: `lax.scan` over write-then-read. Its gradient
is written by hand. A write is a rank-one update, M' = M + u k^T, and is undone
by subtracting it again, so the backward pass walks back in time with one memory
instead of storing one per token. The memory at the end of every segment of up
to `_SEGMENT` tokens is kept, so that rounding errors never build up over more.

Decay cannot be undone without dividing by it; see ops/decaying.py. Between
packed sequences a memory is emptied: all of it decays.
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from nam_jax.ops import decaying, hardware, segments, sequence, undo
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
  log_decay = ops.log_decay
  if segment_ids is not None:  # at the first token, nothing is left of before
    first = sequence.is_first(segment_ids, reverse)
    kept = jnp.zeros_like(ops.k[..., :1]) if log_decay is None else log_decay
    log_decay = jnp.where(first, -jnp.inf, kept)
  choose = functools.partial(form, reverse, log_decay is not None)
  cut = choose(cut=True) if undo.is_cut(ops.k.shape[-1]) else None
  operands = ops._replace(log_decay=log_decay)
  return hardware.differentiable(choose(), cut)(*operands, None)


def form(reverse: bool, decays: bool, cut: bool = False) -> hardware.Form:
  """The loop over tokens. Its operands are those of `chunked.form`.

  Args:
    reverse: Whether to run from the last token to the first.
    decays: Whether there are decays. There are no numbers of sequences.
    cut: Whether to cut the rows of memories into pieces; see `undo`.
  """
  forget = (decaying.forward, decaying.backward, decaying.LENGTH)
  keep = (_forward, _backward, _SEGMENT)
  run, run_back, length = forget if decays else keep

  def alone(*operands):
    # Without a gradient the plainest loop is the fastest.
    *tokens, M, _ = operands
    tokens = jax.tree.map(lambda a: jnp.moveaxis(a, 1, 0), tokens)
    M, reads = lax.scan(_plain_step, M, tuple(tokens), reverse=reverse)
    return jnp.moveaxis(reads, 0, 1), M

  def forward(*operands):
    *tokens, M, _ = operands
    s = tokens[0].shape[1]
    tokens = segments.split_rows(tokens, length)
    (reads, M), saved = run(reverse, cut, tokens, M)
    return (segments.join_rows(reads, s), M), saved

  def backward(saved, gradients):
    d_reads, dM = gradients
    s = d_reads.shape[1]
    d_reads = segments.split_rows(d_reads, length)
    grads, dM = run_back(reverse, cut, saved, (d_reads, dM))
    return *segments.join_rows(grads, s), dM, None

  return hardware.Form(forward, backward, alone)


def _plain_step(M, token):
  q, k, x, e, log_decay = token
  if log_decay is not None:
    M = jnp.exp(log_decay)[..., None, :] * M
  u = x if e is None else x - undo.at(M, e)
  M = M + u[..., :, None] * k[..., None, :]
  return M, undo.at(M, q)


def _forward(reverse, cut, tokens, M):
  q, k, x, e, _ = tokens

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
  return (*grads, None), dM
