"""A whole sequence of reads and writes, as matrix products over token blocks.

The same function as `nam_jax.ops.recurrent.memory_scan`. In a chunk that starts
with memory M, with tokens as rows of Q, K, X and E (see ops/sequence.py), and
without decay:

  A = strict lower triangle of E K^T,     T = (I + A)^-1
  U = T (X - E M^T),                      P = lower triangle of Q K^T
  R = Q M^T + P U,                        M' = M + U^T K

Decay multiplies the entries of A and P by what is left of write j at token i,
the rows of Q and E by what is left of M there, the rows of K by what is left of
them in M', and M by what is left of it in M' (ops/decay.py).

With W = T E, only M' = M - M (W^T K) + (T X)^T K waits for the chunk before;
everything else is computed for all chunks of a segment at once: the whole
sequence on an accelerator, on a CPU as many chunks as fit into the cache. With
nothing to erase E = A = 0, T = I, and this is causal outer-product attention.

The gradient, also by hand: with dR given and G = dM' from the chunk after,

  dU = P^T dR + K G^T,  dX = T^T dU,  dA = -tril(dX U^T),  dP = tril(dR U^T)
  dQ = dR M + dP K,     dK = U G + dP^T Q + dA^T E,        dE = dA K - dX M
  dM = G - G (K^T W) + dR^T Q - (P^T dR)^T W

The log decay l_t multiplies whatever is written before t and read at t or
later. Of that, D_t = q dq + e de - k dk is what ends at t less what starts at
t, if what a token reads of its own write is left out. So, with all of what
passes the start of the chunk,

  dl_t = sum_v M dM - sum of D_s over s < t.

Sequences packed into one row are kept apart by masks: A and P are zero between
tokens of different sequences, M is zero for tokens of a sequence other than its
own, and only the last sequence enters M'.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from nam_jax.ops import decay, hardware, sequence, triangular
from nam_jax.ops.masks import Mask
from nam_jax.ops.sequence import Gate, KeyGate, SegmentIds, ValueGate

_SIZE = 64  # tokens in a chunk
_CPU_CHUNKS = 64  # chunks of all heads computed at once on a CPU


@sequence.gates_by_name
def memory_chunked(
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
  chunk_size: int | None = None,
  precision: lax.PrecisionLike = None,
) -> tuple[Float[Array, "b s h v"], Float[Array, "b h v k"]]:
  """What `memory_scan` computes, a block of tokens at a time.

  Arguments and results are those of `memory_scan`, and:
    chunk_size: Tokens in a block, a power of two; 64 by default. It changes
      the speed, and the result only by rounding.
    precision: Of the large matrix products on accelerators, as in `jnp.matmul`;
      the inverse and what it is computed from are always in float32.
  """
  ops = sequence.fold(
    q,
    k,
    v,
    p_r=p_r,
    p_w=p_w,
    p_e=p_e,
    erase_key=erase_key,
    log_decay=log_decay,
    initial_memory=initial_memory,
    mask=mask,
    segment_ids=segment_ids,
  )
  reads, memory = run(ops, segment_ids, chunk_size, precision, reverse)
  return sequence.outputs(reads, p_r, mask, v.dtype), memory


def _check_size(chunk_size: int | None, s: int) -> int:
  size = _SIZE if chunk_size is None else chunk_size
  if size < 1 or size & (size - 1):
    raise ValueError(f"chunk_size must be a power of two, got {chunk_size}")
  return min(size, 1 << max(0, s - 1).bit_length())


@functools.partial(jax.jit, static_argnums=(2, 3, 4))
def run(ops: sequence.Operands, segment_ids, chunk_size, precision, reverse):
  """Reads and memory of operands, in chunks."""
  *tokens, log_decay, M = ops
  part = None
  if segment_ids is not None:
    changes = sequence.changes(segment_ids)
    part = jnp.cumsum(changes, axis=1, dtype=jnp.int32)
    if log_decay is not None:  # what a sequence starts with cannot decay
      first = sequence.is_first(segment_ids, reverse)
      log_decay = jnp.where(first, 0, log_decay)
  shape = ops.k.shape
  function = hardware.differentiable(
    form(shape, chunk_size, precision, reverse),
    form(shape, chunk_size, precision, reverse, on_cpu=True),
  )
  return function(*tokens, log_decay, M, part)


def form(
  shape: tuple[int, ...],
  chunk_size: int | None = None,
  precision: lax.PrecisionLike = None,
  reverse: bool = False,
  on_cpu: bool = False,
) -> hardware.Form:
  """The form of q, k, x, e, log_decay, memory and numbers of sequences.

  Args:
    shape: That of the keys.
    chunk_size: Tokens in a chunk.
    precision: Of the large products.
    reverse: Whether to run from the last token to the first.
    on_cpu: Whether to compute few chunks at once.
  """
  b, s, h, _ = shape
  cut = _make_cut(_check_size(chunk_size, s), s, b * h)
  cut = cut if on_cpu else cut._replace(segments=1)

  def arrange(array, mode="constant"):
    array = jnp.flip(array, axis=1) if reverse else array
    # Short last chunks are padded with tokens that do nothing.
    missing = ((0, 0), (0, cut.length - s), (0, 0), (0, 0))
    return jnp.pad(array, missing, mode if s else "constant")

  def back(array):
    array = array[:, :s]
    return jnp.flip(array, axis=1) if reverse else array

  def forward(*operands):
    *tokens, M, part = operands
    tokens = jax.tree.map(arrange, tokens)
    part = None if part is None else arrange(part, "edge")
    (reads, M), saved = _forward(cut, precision, *tokens, M, part)
    return (back(reads), M), saved

  def backward(saved, gradients):
    d_reads, dM = gradients
    *grads, dM = _backward(cut, precision, saved, (arrange(d_reads), dM))
    return *jax.tree.map(back, grads), dM, None

  return hardware.Form(forward, backward)


class _Cut(NamedTuple):
  """How a sequence [b s h d] is cut into chunks, and these into segments."""

  size: int  # tokens in a chunk
  length: int  # tokens in all
  segments: int

  def take(self, array, i):
    """Segment i as chunks [z b h c d]."""
    b, _, h, d = array.shape
    length = self.length // self.segments
    if self.segments > 1:
      array = lax.dynamic_slice_in_dim(array, i * length, length, axis=1)
    array = array.reshape(b, length // self.size, self.size, h, d)
    return array.transpose(1, 0, 3, 2, 4)

  def join(self, chunks):
    """The sequence of all chunks, as `loop` returns them."""
    *_, b, h, _, d = chunks.shape
    chunks = chunks.reshape(self.length // self.size, b, h, self.size, d)
    return chunks.transpose(1, 0, 3, 2, 4).reshape(b, self.length, h, d)

  def loop(self, body, carry, saved=None, reverse=False):
    """body(carry, i, saved_i) -> (carry, results) for every segment i."""
    if self.segments == 1:
      return body(carry, 0, saved)
    operands = (jnp.arange(self.segments), saved)
    return lax.scan(
      lambda carry, x: body(carry, *x), carry, operands, reverse=reverse
    )


def _make_cut(size: int, s: int, heads: int) -> _Cut:
  chunks = max(1, -(-s // size))
  segments = -(-chunks // max(1, _CPU_CHUNKS // max(1, heads)))
  return _Cut(size, size * segments * -(-chunks // segments), segments)


class _Chunks(NamedTuple):
  """What both passes need of chunks; r is Q alone, or Q and E."""

  rows: Float[Array, "z b h r c k"]
  K: Float[Array, "z b h c k"]
  log_decay: Float[Array, "z b h c d"] | None
  start: Float[Array, "z b h r c k"]  # rows as they meet the memory before
  end: Float[Array, "z b h c k"]  # K as it is left in the memory after
  to_start: Float[Array, "z b h c d"] | None  # factors of the two; None: one
  to_end: Float[Array, "z b h c d"] | None
  through: Float[Array, "z b h 1 d"] | None  # what is left of the memory
  same: Bool[Array, "z b 1 c c"] | None  # packed: tokens of one sequence
  old: Bool[Array, "z b 1 c 1"] | None  # that of the memory before

  @property
  def erases(self) -> bool:
    return self.rows.shape[-3] == 2

  def scores(self, rows, K, precision=triangular.EXACT):
    """P and A; with decay, P without its diagonal."""
    if self.log_decay is not None:
      S = decay.decayed_scores(rows, K, self.log_decay, precision)
    else:
      S = triangular.scores(rows, K, precision)
      c = S.shape[-1]
      lower = jnp.stack([jnp.tri(c, k=-r, dtype=bool) for r in range(2)])
      lower = lower[(None,) * (S.ndim - 3)][..., : S.shape[-3], :, :]
      S = jnp.where(lower, S, 0)
    return (
      S if self.same is None else jnp.where(self.same[..., None, :, :], S, 0)
    )

  def own(self):
    """With decay, the diagonal of P: what tokens read of their own write."""
    return jnp.sum(self.rows[..., 0, :, :] * self.K, axis=-1, keepdims=True)


def _prepare(cut: _Cut, q, k, e, log_decay, part, i) -> _Chunks:
  K = cut.take(k, i)
  rows = [cut.take(array, i) for array in (q, e) if array is not None]
  rows = jnp.stack(rows, axis=-3)
  to_start = to_end = through = same = old = None
  if log_decay is not None:
    log_decay = cut.take(log_decay, i)
    *_, whole = decay.levels(log_decay)
    up_to, after = whole.up_to[..., 0, :, :], whole.after[..., 0, :, :]
    to_start, to_end = jnp.exp(up_to), jnp.exp(after)
    through = jnp.exp(up_to[..., -1:, :])
  if part is not None:
    mine = cut.take(part, i)
    before = jnp.concatenate([part[:, :1], part[:, :-1]], axis=1)
    before = cut.take(before, i)[..., :1, :]
    same, old = mine == _transpose(mine), mine == before
    last = mine == mine[..., -1:, :]
    to_start = _hide(old, to_start, K)
    to_end = _hide(last, to_end, K)
    through = _hide(old[..., -1:, :], through, K[..., -1:, :])
  start = rows if to_start is None else rows * to_start[..., None, :, :]
  end = K if to_end is None else K * to_end
  return _Chunks(
    rows, K, log_decay, start, end, to_start, to_end, through, same, old
  )


def _hide(mask, factor, like):
  """The factor, or one, where the mask is True, else zero."""
  if factor is None:
    factor = jnp.ones_like(like[..., :1])
  return jnp.where(mask, factor, 0)


def _transpose(array):
  return jnp.swapaxes(array, -1, -2)


def _forward(cut, precision, q, k, x, e, log_decay, M, part):
  product = functools.partial(jnp.matmul, precision=precision)

  def segment(M, i, _):
    chunks = _prepare(cut, q, k, e, log_decay, part, i)
    X, T, W = cut.take(x, i), None, None
    S = chunks.scores(chunks.rows, chunks.K)
    Y = X
    if chunks.erases:
      T = triangular.unit_triangular_inverse(S[..., 1, :, :])
      Y = product(T, jnp.concatenate([X, chunks.start[..., 1, :, :]], axis=-1))
      X, W = jnp.split(Y, [X.shape[-1]], axis=-1)
    writes = product(_transpose(Y), chunks.end)
    new, erased = jnp.split(writes, [X.shape[-1]], axis=-2)

    def chunk(M, operands):
      new, erased, through = operands
      kept = M if through is None else through * M
      kept = kept - product(M, erased) if chunks.erases else kept
      return kept + new, M

    M, starts = lax.scan(chunk, M, (new, erased, chunks.through))
    past = _transpose(starts)
    U = X if W is None else X - product(W, past)
    reads = product(chunks.start[..., 0, :, :], past)
    reads = reads + product(S[..., 0, :, :], U)
    reads = reads if log_decay is None else reads + chunks.own() * U
    return M, (reads, (T, U, starts))

  M, (reads, saved) = cut.loop(segment, M)
  return (cut.join(reads), M), (q, k, e, log_decay, part, saved)


def _backward(cut, precision, residuals, gradients):
  q, k, e, log_decay, part, saved = residuals
  d_reads, dM = gradients
  product = functools.partial(jnp.matmul, precision=precision)

  def segment(G, i, saved):
    T, U, starts = saved
    chunks = _prepare(cut, q, k, e, log_decay, part, i)
    dR, Q = cut.take(d_reads, i), chunks.start[..., 0, :, :]
    P = chunks.scores(chunks.rows[..., :1, :, :], chunks.K)[..., 0, :, :]
    dU = product(_transpose(P), dR)
    dU = dU if log_decay is None else dU + chunks.own() * dR
    new, erased = product(_transpose(dR), Q), None
    if chunks.erases:
      W = product(T, chunks.start[..., 1, :, :])
      new = new - product(_transpose(dU), W)
      erased = product(_transpose(chunks.end), W)

    def chunk(G, operands):
      new, erased, through = operands
      kept = G if through is None else through * G
      kept = kept if erased is None else kept - product(G, erased)
      return kept + new, G

    before, ends = lax.scan(
      chunk, G, (new, erased, chunks.through), reverse=True
    )
    dX = dU + product(chunks.end, _transpose(ends))
    H = [dR]
    if chunks.erases:
      dX = product(_transpose(T), dX)
      H.append(-dX)
    d_rows, dK, dl = _arcs(
      chunks, product, jnp.stack(H, axis=-3), U, starts, before, ends, precision
    )
    dQ, *dE = jnp.split(d_rows, d_rows.shape[-3], axis=-3)
    dE = dE[0][..., 0, :, :] if dE else None
    return before, (dQ[..., 0, :, :], dK, dX, dE, dl)

  dM, grads = cut.loop(segment, dM, saved, reverse=True)
  return *jax.tree.map(cut.join, grads), dM


def _arcs(chunks, product, H, U, starts, before, ends, precision):
  """Gradients of rows, keys and decays, from H = [dR; -dX].

  `before` and `ends` are the gradients of the memories before the first chunk
  and after each.
  """
  *lead, r, c, v = H.shape
  flat = H.reshape(*lead, r * c, v)
  dS = product(flat, _transpose(U)).reshape(*lead, r, c, c)
  _, pull = jax.vjp(
    functools.partial(chunks.scores, precision=precision), chunks.rows, chunks.K
  )
  d_rows, dK = pull(dS)
  d_start = product(flat, starts).reshape(d_rows.shape)
  d_end = product(U, ends)
  if chunks.to_start is not None:
    d_start = d_start * chunks.to_start[..., None, :, :]
    d_end = d_end * chunks.to_end
  d_rows, dK = d_rows + d_start, dK + d_end
  if chunks.log_decay is None:
    return d_rows, dK, None
  D = jnp.sum(chunks.rows * d_rows, axis=-3) - chunks.K * dK
  passing = jnp.concatenate([before[None], ends[:-1]]) * starts
  passing = jnp.sum(passing, axis=-2, keepdims=True)
  if chunks.log_decay.shape[-1] == 1:
    D, passing = (jnp.sum(a, axis=-1, keepdims=True) for a in (D, passing))
  earlier = jnp.tri(c, k=-1, dtype=bool)[(None,) * (D.ndim - 2)]
  if chunks.same is not None:
    earlier = earlier & chunks.same
    passing = jnp.where(chunks.old, passing, 0)
  earlier = jnp.broadcast_to(earlier, (*D.shape[:-1], c)).astype(D.dtype)
  dl = passing - triangular.exact_product(earlier, D)
  own = jnp.sum(H[..., 0, :, :] * U, axis=-1, keepdims=True)
  d_rows = d_rows.at[..., 0, :, :].add(own * chunks.K)
  return d_rows, dK + own * chunks.rows[..., 0, :, :], dl
