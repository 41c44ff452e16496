"""The loop over tokens for a memory that decays, and its gradient.

A step is N = M diag(a), u = x - N e, M' = N + u k^T and r = M' q, with the
decay a = exp(l). Decay is not undone, since that would divide by it. Instead
the forward pass keeps the memory at the start of every segment of up to
`LENGTH` tokens. The backward pass runs a segment forward once more, to have N
of each token, and then walks back through it. With dr given and G = dM' from
the token after:

  G <- G + dr q^T,   dq = M'^T dr,   du = G k,   dk = G^T u,   de = -N^T du
  G <- G - du e^T,   dl = sum_v G N,   dM = G diag(a)
"""

import jax.numpy as jnp
from jax import lax

from nam_jax.ops import undo

# Longer ones would not stay in the cache; shorter ones keep more memories.
LENGTH = 16


def forward(reverse: bool, cut: bool, tokens, M: undo.Memory):
  """Reads and memory of segments, and what the backward pass needs.

  Args:
    reverse: Whether to run from the last token to the first.
    cut: Whether to cut the rows of memories into pieces; see `undo`.
    tokens: q, k, x, e and log decay of all segments, [z c b h d].
    M: The memory to start with.
  """
  q, k, x, e, log_decay = tokens
  a = jnp.exp(log_decay)

  def step(memory, token):
    q, k, x, e, a = token
    N = undo.settle(memory, decay=a)
    u = x if e is None else x - undo.at(N, e)
    # M' q = N q + u (k . q) does not have to wait for M'.
    read = undo.at(N, q) + u * undo.dot(k, q)
    return memory.add(N, (u, k)), (read, u)

  def segment(M, tokens):
    start = undo.pending(M, cut=cut)
    memory, (reads, u) = lax.scan(step, start, tokens, reverse=reverse)
    return undo.settle(memory), (reads, u, M)

  M, (reads, u, starts) = lax.scan(segment, M, (q, k, x, e, a), reverse=reverse)
  return (reads, M), (q, k, u, e, a, starts)


def backward(reverse: bool, cut: bool, saved, gradients):
  """The gradients of the tokens, and that of the memory to start with."""
  *tokens, starts = saved
  d_reads, dM = gradients
  by_head = tokens[4].shape[-1] == 1

  def again(memory, token):
    k, u, a = token
    memory = memory.add(undo.settle(memory, decay=a), (u, k))
    return memory, memory.M

  def step(carry, token):
    gradient, later = carry
    q, k, u, e, a, d_read, N = token
    G = undo.settle(gradient, (d_read, q), decay=later)
    N = N.reshape(G.shape)
    dq = undo.along(N, d_read) + k * undo.dot(u, d_read)
    du, dk, de, erased = undo.at(G, k), undo.along(G, u), None, ()
    if by_head:
      dl = jnp.sum(G * N, axis=(-2, -1))[..., None]
    else:  # some sums of columns are slow on a CPU, but no products are
      dl = undo.along(G * N, jnp.ones_like(u))
    if e is not None:
      de, erased = -undo.along(N, du), ((-du, e),)
      dl = dl + (undo.dot(e, de) if by_head else e * de)
    return (gradient.add(G, *erased), a), (dq, dk, du, de, dl)

  def segment(dM, operands):
    *tokens, M = operands
    _, k, u, e, a, _ = tokens
    start = undo.pending(M, cut=cut)
    _, N = lax.scan(again, start, (k, u, a), reverse=reverse)
    products = 0 if e is None else 1
    ones = jnp.ones_like(a, shape=a.shape[1:])
    start = undo.pending(dM, products, cut=cut), ones
    (gradient, a), grads = lax.scan(
      step, start, (*tokens, N), reverse=not reverse
    )
    return undo.settle(gradient, decay=a), grads

  dM, grads = lax.scan(
    segment, dM, (*tokens, d_reads, starts), reverse=not reverse
  )
  return grads, dM
