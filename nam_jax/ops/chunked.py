"""A whole sequence of reads and writes, by blocks of tokens in matrix products.

The same function as `nam_jax.ops.recurrent.memory_scan`. Inside a chunk that
starts with memory M, with tokens as rows of Q, K, X and E = p_e K (see
ops/sequence.py):

  A = strict lower triangle of E K^T,     T = (I + A)^-1
  U = T (X - E M^T),                      P = lower triangle of Q K^T
  R = Q M^T + P U,                        M' = M + U^T K

Only U and M' wait for the chunk before, so everything else is computed for all
chunks at once. With nothing to erase E = A = 0, T = I, and this is causal
outer-product attention.

The gradient, also by hand: with dR given and dM' = G from the chunk after,

  dU = P^T dR + K G^T,  dX = T^T dU,  dA = -tril(dX U^T),  dP = tril(dR U^T)
  dQ = dR M + dP K,     dK = U G + dP^T Q + dA^T E,        dE = dA K - dX M
  dM = G + dR^T Q - dX^T E
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from nam_jax.ops import sequence
from nam_jax.ops.sequence import Gate, Mask

_WHOLE = 16  # the largest triangular block that is inverted in place


def memory_chunked(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b s h k"],
  v: Float[Array, "b s h v"],
  p_r: Gate = 1.0,
  p_w: Gate = 1.0,
  p_e: Gate = 1.0,
  *,
  initial_memory: Float[Array, "b h v k"] | None = None,
  mask: Mask | None = None,
  reverse: bool = False,
  chunk_size: int | None = None,
) -> tuple[Float[Array, "b s h v"], Float[Array, "b h v k"]]:
  """What `memory_scan` computes, `chunk_size` tokens at a time.

  Args are those of `memory_scan`, and:
    chunk_size: Tokens in a block, a power of two. By default 32 on a CPU and 64
      elsewhere. It changes the speed, and the result by rounding only.

  Returns:
    The outputs, in the type of v, and the final memory, in float32 or wider.
  """
  sequence.check_gate("p_r", p_r, k.shape[:3])
  ops = sequence.fold(q, k, v, p_w, p_e, initial_memory, mask)
  size = _chunk_size(chunk_size, q.shape[1])
  reads, memory = _run(ops, size, reverse)
  return sequence.outputs(reads, p_r, mask, v.dtype), memory


@functools.partial(jax.jit, static_argnums=(1, 2))
def _run(ops: sequence.Operands, size: int, reverse: bool):
  q, k, x, p_e, M = ops
  split = functools.partial(_split, size=size, reverse=reverse)
  e = None if p_e is None else split(p_e * k)
  reads, M = _chunks(split(q), split(k), e, split(x), M)
  return _join(reads, q.shape[1], reverse), M


def _chunk_size(chunk_size: int | None, s: int) -> int:
  size = chunk_size
  if size is None:
    size = 32 if jax.default_backend() == "cpu" else 64
  if size < 1 or size & (size - 1):
    raise ValueError(f"chunk_size must be a power of two, got {chunk_size}")
  return min(size, 1 << max(0, s - 1).bit_length())


def _split(
  array: Float[Array, "b s h d"], *, size: int, reverse: bool
) -> Float[Array, "z b h c d"]:
  """Chunks first; a short last one is filled with tokens that do nothing."""
  if reverse:
    array = jnp.flip(array, axis=1)
  b, s, h, d = array.shape
  array = jnp.pad(array, ((0, 0), (0, -s % size), (0, 0), (0, 0)))
  return array.reshape(b, -1, size, h, d).transpose(1, 0, 3, 2, 4)


def _join(
  chunks: Float[Array, "z b h c d"], s: int, reverse: bool
) -> Float[Array, "b s h d"]:
  z, b, h, c, d = chunks.shape
  array = chunks.transpose(1, 0, 3, 2, 4).reshape(b, z * c, h, d)[:, :s]
  return jnp.flip(array, axis=1) if reverse else array


def unit_triangular_inverse(
  A: Float[Array, "*z c c"],
) -> Float[Array, "*z c c"]:
  """(I + A)^-1 for strictly lower triangular A, c a power of two.

  By doubling: when X inverts the diagonal blocks of one size and L holds the
  blocks below them that complete the next size, X - X L X inverts those. Small
  blocks are done in place, larger ones cut out, so that no work is spent on
  zeros. Stable where the shorter product (I - A)(I + A^2)(I + A^4)... is not
  (nearly equal keys make the powers of A grow like binomials), and no call into
  LAPACK, whose batched solves can block for ever on a CPU with two cores.
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


def _forward(q, k, e, x, M):
  P = jnp.tril(q @ _transpose(k))
  if e is None:
    T = W = None
    grown = jnp.cumsum(_transpose(x) @ k, axis=0) + M[None]
    starts, M = jnp.concatenate([M[None], grown[:-1]]), grown[-1]
    U = x
  else:
    T = unit_triangular_inverse(jnp.tril(e @ _transpose(k), -1))
    W = T @ e

    def chunk(M, operands):
      X, W, k = operands
      U = X - W @ _transpose(M)
      return M + _transpose(U) @ k, (M, U)

    M, (starts, U) = lax.scan(chunk, M, (T @ x, W, k))
  reads = q @ _transpose(starts) + P @ U
  return (reads, M), (q, k, e, P, T, W, U, starts)


def _backward(residuals, gradients):
  q, k, e, P, T, W, U, starts = residuals
  dR, G = gradients
  written = _transpose(dR) @ q  # what each chunk's reads ask of its start
  if e is None:
    later = jnp.cumsum(written[::-1], axis=0)[::-1] + G[None]
    ends, dM = jnp.concatenate([later[1:], G[None]]), later[0]
    dU = _transpose(P) @ dR + k @ _transpose(ends)
  else:

    def chunk(G, operands):
      dU, k, W, written = operands
      dU = dU + k @ _transpose(G)
      return G + written - _transpose(dU) @ W, (G, dU)

    dM, (ends, dU) = lax.scan(
      chunk, G, (_transpose(P) @ dR, k, W, written), reverse=True
    )
  dP = jnp.tril(dR @ _transpose(U))
  dq = dR @ starts + dP @ k
  dk = U @ ends + _transpose(dP) @ q
  if e is None:
    return dq, dk, None, dU, dM
  dx = _transpose(T) @ dU
  dA = -jnp.tril(dx @ _transpose(U), -1)
  de = dA @ k - dx @ starts
  return dq, dk + _transpose(dA) @ e, de, dx, dM


@jax.custom_vjp
def _chunks(q, k, e, x, M):
  return _forward(q, k, e, x, M)[0]


_chunks.defvjp(_forward, _backward)
