"""Triangular matrices, put together from blocks of growing size.

All products are in float32 on every platform: where keys are nearly equal, the
rounding of narrower ones would be amplified by the inverse.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

EXACT = lax.Precision.HIGHEST
_WHOLE = 16  # the largest block that is inverted inside a larger one


def exact_product(
  left: Float[Array, "*z i j"], right: Float[Array, "*z j k"]
) -> Float[Array, "*z i k"]:
  """A matrix product in full float32."""
  return jnp.matmul(left, right, precision=EXACT)


def diagonal_blocks(
  A: Float[Array, "*z c c"], block: int
) -> Float[Array, "*z n {block} {block}"]:
  """The blocks of one size on the diagonal."""
  starts = range(0, A.shape[-1], block)
  return jnp.stack(
    [A[..., i : i + block, i : i + block] for i in starts], axis=-3
  )


def pairs(
  X: Float[Array, "*z n c d"],
) -> tuple[Float[Array, "*z m c d"], Float[Array, "*z m c d"]]:
  """Blocks 0, 2, 4, ... and blocks 1, 3, 5, ...

  By reshaping: libtpu 0.0.42 crashes on some slices with a stride.
  """
  *lead, n, c, d = X.shape
  X = X.reshape(*lead, n // 2, 2, c, d)
  return X[..., 0, :, :], X[..., 1, :, :]


def join_blocks(
  X: Float[Array, "*z n c c"], below: Float[Array, "*z m c c"]
) -> Float[Array, "*z m e e"]:
  """Pairs of blocks [[X_0, 0], [below, X_1]], half as many, twice as large."""
  upper, lower = pairs(X)
  left = jnp.concatenate([upper, below], axis=-2)
  right = jnp.concatenate([jnp.zeros_like(lower), lower], axis=-2)
  return jnp.concatenate([left, right], axis=-1)


def unit_triangular_inverse(
  A: Float[Array, "*z c c"],
) -> Float[Array, "*z c c"]:
  """(I + A)^-1 for strictly lower triangular A, c a power of two.

  By doubling: [[X, 0], [L, Y]] has the inverse [[X', 0], [-Y' L X', Y']]. Up to
  `_WHOLE`, all blocks of a size are done at once inside larger ones, which
  computes with zeros but is faster; larger ones are cut out. Stable where the
  shorter product (I - A)(I + A^2)(I + A^4)... is not (nearly equal keys make
  the powers of A grow like binomials), and no call into LAPACK, whose batched
  solves can hang on a CPU with two cores.
  """
  size = A.shape[-1]
  whole = min(_WHOLE, size)
  diagonal = diagonal_blocks(A, whole)
  i, j = jnp.indices((whole, whole))
  X = jnp.broadcast_to(jnp.eye(whole, dtype=A.dtype), diagonal.shape)
  block = 1
  while block < whole:
    is_below = (i // block % 2 == 1) & (j // block == i // block - 1)
    L = jnp.where(is_below, diagonal, 0)
    X = X - (L if block == 1 else exact_product(X, exact_product(L, X)))
    block *= 2
  while block < size:
    L = diagonal_blocks(A, 2 * block)[..., block:, :block]
    upper, lower = pairs(X)
    X = join_blocks(X, -exact_product(lower, exact_product(L, upper)))
    block *= 2
  return X[..., 0, :, :]
