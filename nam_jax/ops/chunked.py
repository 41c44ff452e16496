"""A whole sequence of reads and writes, as matrix products over token blocks.

The same function as `nam_jax.ops.recurrent.memory_scan`. Inside a chunk that
starts with memory M, with tokens as rows of Q, K, X and E = p_e K (see
ops/sequence.py):

  A = strict lower triangle of E K^T,     T = (I + A)^-1
  U = T (X - E M^T),                      P = lower triangle of Q K^T
  R = Q M^T + P U,                        M' = M + U^T K

Only U and M' wait for the chunk before, so everything else is computed for all
chunks of a segment at once: the whole sequence on an accelerator, a few chunks
that fit into the cache on a CPU. With nothing to erase E = A = 0, T = I, and
this is causal outer-product attention.

The gradient, also by hand: with dR given and dM' = G from the chunk after,

  dU = P^T dR + K G^T,  dX = T^T dU,  dA = -tril(dX U^T),  dP = tril(dR U^T)
  dQ = dR M + dP K,     dK = U G + dP^T Q + dA^T E,        dE = dA K - dX M
  dM = G + dR^T Q - dX^T E

Sequences packed into one row are kept apart by masks: A and P are zero between
tokens of different sequences, M is zero for tokens of a sequence other than its
own, and only the last sequence enters M'.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float

from nam_jax.ops import hardware, sequence
from nam_jax.ops.masks import Mask
from nam_jax.ops.sequence import Gate, SegmentIds

_CPU_SEGMENT = 4  # chunks computed at once on a CPU
_WHOLE = 16  # the largest triangular block that is inverted in place


@sequence.gates_by_name
def memory_chunked(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b s h k"],
  v: Float[Array, "b s h v"],
  *,
  chunk_size: int | None = None,
  p_r: Gate = 1.0,
  p_w: Gate = 1.0,
  p_e: Gate = 1.0,
  initial_memory: Float[Array, "b h v k"] | None = None,
  mask: Mask | None = None,
  reverse: bool = False,
  segment_ids: SegmentIds | None = None,
) -> tuple[Float[Array, "b s h v"], Float[Array, "b h v k"]]:
  """What `memory_scan` computes, a block of tokens at a time.

  Arguments and results are those of `memory_scan`, and:
    chunk_size: Tokens in a block, a power of two; by default 64, or 32 on a
      CPU. It changes the speed, and the result only by rounding.
  """
  ops = sequence.fold(q, k, v, p_r, p_w, p_e, initial_memory, mask, segment_ids)
  cut = _make_cut(q.shape[1], chunk_size)
  reads, memory = _run(ops, segment_ids, cut, reverse)
  return sequence.outputs(reads, p_r, mask, v.dtype), memory


class _Cut(NamedTuple):
  """How a sequence [b s h d] is cut: tokens per chunk and per segment."""

  size: int
  segment: int

  def take(self, array, i):
    """Segment i as chunks [z b h c d]."""
    array = lax.dynamic_slice_in_dim(array, i * self.segment, self.segment, 1)
    b, _, h, d = array.shape
    return array.reshape(b, -1, self.size, h, d).transpose(1, 0, 3, 2, 4)

  def put(self, array, chunks, i):
    """The array with segment i replaced."""
    z, b, h, c, d = chunks.shape
    chunks = chunks.transpose(1, 0, 3, 2, 4).reshape(b, z * c, h, d)
    return lax.dynamic_update_slice_in_dim(array, chunks, i * self.segment, 1)


def _make_cut(s: int, chunk_size: int | None) -> _Cut:
  size = chunk_size
  if size is None:
    size = 32 if hardware.on_cpu() else 64
  if size < 1 or size & (size - 1):
    raise ValueError(f"chunk_size must be a power of two, got {chunk_size}")
  size = min(size, 1 << max(0, s - 1).bit_length())
  chunks = max(1, -(-s // size))
  segments = -(-chunks // _CPU_SEGMENT) if hardware.on_cpu() else 1
  return _Cut(size, size * -(-chunks // segments))


@functools.partial(jax.jit, static_argnums=(2, 3))
def _run(ops: sequence.Operands, segment_ids, cut: _Cut, reverse: bool):
  *tokens, M = ops
  s = ops.q.shape[1]

  def prepare(array, mode="constant"):
    array = jnp.flip(array, axis=1) if reverse else array
    # A short last segment is padded with tokens that do nothing.
    missing = -s % cut.segment if s else cut.segment
    return jnp.pad(array, ((0, 0), (0, missing), (0, 0), (0, 0)), mode)

  part = None
  if segment_ids is not None and s:
    ids = prepare(segment_ids[..., None, None], "edge")
    changes = ids[:, 1:] != ids[:, :-1]
    part = jnp.cumsum(changes, axis=1, dtype=jnp.int32)
    part = jnp.pad(part, ((0, 0), (1, 0), (0, 0), (0, 0)))
  reads, M = _chunks(cut, *jax.tree.map(prepare, tokens), M, part)
  reads = reads[:, :s]
  return jnp.flip(reads, axis=1) if reverse else reads, M


class _Apart(NamedTuple):
  """What tokens of packed sequences see; None if there is only one."""

  same: Bool[Array, "z b 1 c c"] | None  # of each other
  old: Bool[Array, "z b 1 c 1"] | None  # of the memory before the chunk
  last: Bool[Array, "z b 1 c 1"] | None  # and the memory after it of them


def _make_apart(cut, part, i) -> _Apart:
  if part is None:
    return _Apart(None, None, None)
  mine = cut.take(part, i)
  before = jnp.concatenate([part[:, :1], part[:, :-1]], axis=1)
  before = cut.take(before, i)[..., :1, :]
  return _Apart(
    mine == _transpose(mine), mine == before, mine == mine[..., -1:, :]
  )


def _hide(mask, array):
  return array if mask is None else jnp.where(mask, array, 0)


def unit_triangular_inverse(
  A: Float[Array, "*z c c"],
) -> Float[Array, "*z c c"]:
  """(I + A)^-1 for strictly lower triangular A, c a power of two.

  By doubling: when X inverts the diagonal blocks of one size and L holds the
  blocks below them that complete the next size, X - X L X inverts those. Small
  blocks are done in place, larger ones cut out, so that no work is spent on
  zeros. Stable where the shorter product (I - A)(I + A^2)(I + A^4)... is not
  (nearly equal keys make the powers of A grow like binomials), and no call into
  LAPACK, whose batched solves can hang on a CPU with two cores.
  """
  size, block = A.shape[-1], 1
  whole = min(_WHOLE, size)
  diagonal = _diagonal_blocks(A, whole)
  X = jnp.broadcast_to(jnp.eye(whole, dtype=A.dtype), diagonal.shape)
  while block < whole:
    i, j = np.indices((whole, whole)) // block
    L = jnp.where((i % 2 == 1) & (j == i - 1), diagonal, 0)
    X, block = X - X @ (L @ X), 2 * block
  while block < size:
    upper, lower = X[..., 0::2, :, :], X[..., 1::2, :, :]
    L = _diagonal_blocks(A, 2 * block)[..., block:, :block]
    left = jnp.concatenate([upper, -lower @ (L @ upper)], axis=-2)
    right = jnp.concatenate([jnp.zeros_like(lower), lower], axis=-2)
    X, block = jnp.concatenate([left, right], axis=-1), 2 * block
  return X[..., 0, :, :]


def _diagonal_blocks(A, block):
  starts = range(0, A.shape[-1], block)
  return jnp.stack(
    [A[..., i : i + block, i : i + block] for i in starts], axis=-3
  )


def _transpose(array):
  return jnp.swapaxes(array, -1, -2)


def _forward(cut, q, k, x, p_e, M, part):
  def segment(carry, i):
    M, reads = carry
    Q, K, X = (cut.take(array, i) for array in (q, k, x))
    apart, T, W = _make_apart(cut, part, i), None, None
    P = _hide(apart.same, jnp.tril(Q @ _transpose(K)))
    if p_e is not None:
      E = cut.take(p_e, i) * K
      A = _hide(apart.same, jnp.tril(E @ _transpose(K), -1))
      T = unit_triangular_inverse(A)
      X, W = T @ X, T @ _hide(apart.old, E)

    def chunk(M, operands):
      U, W, K, old = operands
      U = U if W is None else U - W @ _transpose(M)
      new = _transpose(U) @ K
      return _kept(old, M) + new, (M, U)

    K = _hide(apart.last, K)
    M, (starts, U) = lax.scan(chunk, M, (X, W, K, apart.old))
    found = _hide(apart.old, Q) @ _transpose(starts) + P @ U
    return (M, cut.put(reads, found, i)), (T, U, starts)

  count = jnp.arange(q.shape[1] // cut.segment)
  (M, reads), saved = lax.scan(segment, (M, jnp.zeros_like(x)), count)
  return (reads, M), (q, k, p_e, part, saved)


def _kept(old, M):
  """M where the chunk's last token is in the memory's sequence, else 0."""
  return M if old is None else _hide(old[..., -1:, :], M)


def _backward(cut, residuals, gradients):
  q, k, p_e, part, saved = residuals
  d_reads, dM = gradients

  def segment(carry, operands):
    G, *grads = carry
    i, (T, U, starts) = operands
    Q, K, dR = (cut.take(array, i) for array in (q, k, d_reads))
    apart, W = _make_apart(cut, part, i), None
    P = _hide(apart.same, jnp.tril(Q @ _transpose(K)))
    if p_e is not None:
      p = cut.take(p_e, i)
      E = p * K
      W = T @ _hide(apart.old, E)

    def chunk(G, operands):
      dU, dR, Q, K, W, U, old = operands
      dU, dK = dU + K @ _transpose(G), U @ G
      G = _kept(old, G) + _transpose(dR) @ Q
      G = G if W is None else G - _transpose(dU) @ W
      return G, (dU, dK)

    seen, left = _hide(apart.old, Q), _hide(apart.last, K)
    ends = (_transpose(P) @ dR, dR, seen, left, W, U, apart.old)
    G, (dX, dK) = lax.scan(chunk, G, ends, reverse=True)
    dP = _hide(apart.same, jnp.tril(dR @ _transpose(U)))
    dQ = _hide(apart.old, dR @ starts) + dP @ K
    dK, dp = _hide(apart.last, dK) + _transpose(dP) @ Q, None
    if p_e is not None:
      dX = _transpose(T) @ dX
      dA = -_hide(apart.same, jnp.tril(dX @ _transpose(U), -1))
      dE = dA @ K - _hide(apart.old, dX @ starts)
      dK = dK + _transpose(dA) @ E + p * dE
      dp = jnp.sum(dE * K, -1, keepdims=True)
    put = functools.partial(cut.put, i=i)
    return (G, *jax.tree.map(put, grads, [dQ, dK, dX, dp])), None

  count = jnp.arange(q.shape[1] // cut.segment)
  zeros = jax.tree.map(jnp.zeros_like, (q, k, d_reads, p_e))
  (dM, *grads), _ = lax.scan(
    segment, (dM, *zeros), (count, saved), reverse=True
  )
  return *grads, dM, None


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _chunks(cut, q, k, x, p_e, M, part):
  return _forward(cut, q, k, x, p_e, M, part)[0]


_chunks.defvjp(_forward, _backward)
