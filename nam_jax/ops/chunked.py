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

Only U = T X - (T E) M^T and M' wait for the chunk before, so everything else is
computed for all chunks of a segment at once: the whole sequence on an
accelerator, on a CPU as many chunks as fit into the cache. With nothing to
erase E = A = 0, T = I, and this is causal outer-product attention.

The gradient, also by hand: with dR given and G = dM' from the chunk after,

  dU = P^T dR + K G^T,  dX = T^T dU,  dA = -tril(dX U^T),  dP = tril(dR U^T)
  dQ = dR M + dP K,     dK = U G + dP^T Q + dA^T E,        dE = dA K - dX M
  dM = G + dR^T Q - dX^T E

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
from nam_jax.ops.cut import Cut, make_cut
from nam_jax.ops.masks import Mask
from nam_jax.ops.sequence import Gate, KeyGate, SegmentIds, ValueGate

_SIZE = 64  # tokens in a chunk


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
    precision: Of the matrix products on accelerators, as in `jnp.matmul`; the
      inverse, what it is computed from and its products are always in float32.
  """
  gates = (p_r, p_w, p_e, erase_key, log_decay)
  ops = sequence.fold(q, k, v, gates, initial_memory, mask, segment_ids)
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
  b, s, h, width = shape
  size = _check_size(chunk_size, s)
  cut = make_cut(size, s, b * h * width if on_cpu else 0)

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


class _Chunks(NamedTuple):
  """What both passes need of the chunks of a segment."""

  Q: Float[Array, "z b h c k"]
  K: Float[Array, "z b h c k"]
  E: Float[Array, "z b h c k"] | None
  log_decay: Float[Array, "z b h c d"] | None
  to_start: Float[Array, "z b h c d"] | None  # what is left of M at a token
  to_end: Float[Array, "z b h c d"] | None  # and of a write in M'
  through: Float[Array, "z b h 1 d"] | None  # and of M in M'; None: all
  same: Bool[Array, "z b 1 c c"] | None  # packed: tokens of one sequence
  old: Bool[Array, "z b 1 c 1"] | None  # that of the memory before

  @property
  def by_channel(self) -> bool:
    """Whether each channel of the keys decays by itself."""
    return self.to_start is not None and self.to_start.shape[-1] > 1

  def scores(self, rows, K, diagonal=-1, precision=triangular.EXACT):
    """A, or P with its diagonal = 0; without it where channels decay."""
    if self.log_decay is not None and self.log_decay.shape[-1] > 1:
      S = decay.channel_scores(rows, K, self.log_decay, precision)
    else:
      S = jnp.matmul(rows, _transpose(K), precision=precision)
      if self.log_decay is None:
        S = jnp.tril(S, diagonal)
      else:
        S = S * decay.between(self.log_decay, diagonal)
    return S if self.same is None else jnp.where(self.same, S, 0)

  def own(self):
    """The diagonal of P: what tokens read of their own write."""
    return jnp.sum(self.Q * self.K, axis=-1, keepdims=True)


def _prepare(cut: Cut, q, k, e, log_decay, part, i) -> _Chunks:
  take = functools.partial(cut.take, i=i)
  Q, K = take(q), take(k)
  E, log_decay = jax.tree.map(take, (e, log_decay))
  to_start = to_end = through = same = old = None
  if log_decay is not None:
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
  return _Chunks(Q, K, E, log_decay, to_start, to_end, through, same, old)


def _hide(mask, factor, like):
  """The factor, or one, where the mask is True, else zero."""
  if factor is None:
    factor = jnp.ones_like(like[..., :1])
  return jnp.where(mask, factor, 0)


def _times(factor, array):
  return array if factor is None else factor * array


def _transpose(array):
  return jnp.swapaxes(array, -1, -2)


def _forward(cut, precision, q, k, x, e, log_decay, M, part):
  product = functools.partial(jnp.matmul, precision=precision)

  def segment(M, i, _):
    chunks = _prepare(cut, q, k, e, log_decay, part, i)
    Q, K, E = chunks[:3]
    X, T, W = cut.take(x, i), None, None
    P = chunks.scores(Q, K, 0)
    if E is not None:
      T = triangular.unit_triangular_inverse(chunks.scores(E, K))
      W = triangular.exact_product(T, _times(chunks.to_start, E))
      X = triangular.exact_product(T, X)

    def chunk(M, operands):
      U, W, K, through = operands
      U = U if W is None else U - product(W, _transpose(M))
      return _times(through, M) + product(_transpose(U), K), (M, U)

    operands = (X, W, _times(chunks.to_end, K), chunks.through)
    M, (starts, U) = lax.scan(chunk, M, operands)
    reads = product(_times(chunks.to_start, Q), _transpose(starts))
    reads = reads + product(P, U)
    reads = reads + chunks.own() * U if chunks.by_channel else reads
    return M, reads, (T, U, starts)

  M, reads, saved = cut.loop(segment, M)
  return (reads, M), (q, k, e, log_decay, part, saved)


def _backward(cut, precision, residuals, gradients):
  q, k, e, log_decay, part, saved = residuals
  d_reads, dM = gradients
  product = functools.partial(jnp.matmul, precision=precision)

  def segment(G, i, saved):
    T, U, starts = saved
    chunks = _prepare(cut, q, k, e, log_decay, part, i)
    Q, K, E = chunks[:3]
    dR, W = cut.take(d_reads, i), None
    P = chunks.scores(Q, K, 0)
    dU = product(_transpose(P), dR)
    dU = dU + chunks.own() * dR if chunks.by_channel else dU
    if E is not None:
      W = triangular.exact_product(T, _times(chunks.to_start, E))

    def chunk(G, operands):
      dU, dR, Q, K, W, U, through, M = operands
      dU, dK = dU + product(K, _transpose(G)), product(U, G)
      G = _times(through, G) + product(_transpose(dR), Q)
      G = G if W is None else G - product(_transpose(dU), W)
      passing = None if log_decay is None else jnp.sum(M * G, -2, keepdims=True)
      return G, (dU, dK, passing)

    Q_start, K_end = _times(chunks.to_start, Q), _times(chunks.to_end, K)
    operands = (dU, dR, Q_start, K_end, W, U, chunks.through, starts)
    G, (dX, dK, passing) = lax.scan(chunk, G, operands, reverse=True)

    def pull(rows, diagonal, dS):
      """Gradients of rows and K, from that of their scores."""
      form = functools.partial(
        chunks.scores, diagonal=diagonal, precision=precision
      )
      return jax.vjp(form, rows, K)[1](dS)

    dP = product(dR, _transpose(U))
    dQ, dK_read = pull(Q, 0, dP)
    dQ_past = _times(chunks.to_start, product(dR, starts))
    dK, dE, dl = _times(chunks.to_end, dK), None, None
    if E is not None:
      dX = triangular.exact_product(_transpose(T), dX)
      dE, dK_erased = pull(E, -1, -product(dX, _transpose(U)))
      dE = dE - _times(chunks.to_start, product(dX, starts))
      dK = dK + dK_erased
    if log_decay is not None:
      D = Q * dQ_past - K * dK
      D = D if dE is None else D + E * dE
      if chunks.by_channel:
        D = D + Q * dQ - K * dK_read
        own = jnp.sum(dR * U, axis=-1, keepdims=True)
        dQ, dK_read = dQ + own * K, dK_read + own * Q
      else:
        read = jnp.tril(dP * P, -1)
        read = jnp.sum(read, -1) - jnp.sum(read, -2)
        D = jnp.sum(D, axis=-1, keepdims=True) + read[..., None]
        passing = jnp.sum(passing, axis=-1, keepdims=True)
      dl = _decay_gradient(chunks, D, passing)
    return G, (dQ + dQ_past, dK + dK_read, dX, dE, dl), None

  dM, grads, _ = cut.loop(segment, dM, saved, reverse=True)
  return *grads, dM


def _decay_gradient(chunks, D, passing):
  """dl = sum_v M dM at the chunk's start - the sum of D over earlier tokens."""
  earlier = jnp.tri(D.shape[-2], k=-1, dtype=bool)[(None,) * (D.ndim - 2)]
  if chunks.same is not None:
    earlier = earlier & chunks.same
    passing = jnp.where(chunks.old, passing, 0)
  if D.shape[-1] == 1:
    D = jnp.where(earlier, _transpose(D), 0)
    return passing - jnp.sum(D, axis=-1, keepdims=True)
  earlier = jnp.broadcast_to(earlier, (*D.shape[:-1], D.shape[-2]))
  return passing - triangular.exact_product(earlier.astype(D.dtype), D)
