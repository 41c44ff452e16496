"""Rank-one writes, M' = M + u k^T: the inner loop of every recurrence.

An outer product that a step computes is left pending and added at the start of
the next one. This is only for speed: if it were added at once, XLA would fuse
the computation of u and k into the product and repeat it for every element of
the memory.
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

Column = Float[Array, "b h v"]
Row = Float[Array, "b h k"]
Memory = Float[Array, "b h v k"]
Product = tuple[Column, Row]


class Pending(NamedTuple):
  """A memory to which the products column row^T are still to be added.

  The rows of the memory may be cut into g pieces of w, see `for_platform`.
  """

  M: Float[Array, "b h v g w"]
  products: tuple[Product, ...]

  def add(self, M: Memory, *products: Product) -> "Pending":
    """M + sum of column row^T, cut as this one, for the next step."""
    return Pending(M.reshape(self.M.shape), products)


def is_cut(k: int) -> bool:
  """Whether rows of width k are cut into pieces on a CPU.

  Pieces of four are faster where the rows are short: LLVM unrolls loops of 16
  or 32 and then does not vectorise them, which makes the sum three times as
  slow.
  """
  return k > 0 and k % 16 == 0


def for_platform(run, k: int, *operands):
  """run(cut, *operands), with cut rows of width k on a CPU if that is faster.

  What counts is the platform that the program is compiled for.
  """
  if not is_cut(k):
    return run(False, *operands)
  return lax.platform_dependent(
    *operands,
    cpu=functools.partial(run, True),
    default=functools.partial(run, False),
  )


def pending(M: Memory, products: int = 1, *, cut: bool = False) -> Pending:
  """M with nothing to add yet, for a loop with so many products per step."""
  *lead, v, k = M.shape
  column, row = (jnp.zeros_like(M, shape=(*lead, d)) for d in (v, k))
  w = 4 if cut else max(1, k)
  M = M.reshape(*lead, v, k // w, w)
  return Pending(M, ((column, row),) * products)


def settle(
  memory: Pending,
  *products: Product,
  decay: Float[Array, "b h _"] | None = None,
) -> Memory:
  """The memory itself, with everything added, including the given products.

  What was there and what was pending decays, if it does; the given products do
  not.
  """
  M, pending = memory
  *lead, v, g, w = M.shape
  if decay is not None:
    # Each row decays on its own: LLVM does not vectorise a decay of the sum.
    pending = tuple((column, decay * row) for column, row in pending)
    decay = jnp.broadcast_to(decay, (*lead, g * w))
    M = decay.reshape(*lead, 1, g, w) * M
  for column, row in (*pending, *products):
    M = M + column[..., None, None] * row.reshape(*lead, 1, g, w)
  return M.reshape(*lead, v, g * w)


def back(
  G: Memory, u: Column, k: Row, p_e: Float[Array, "b h 1"], *late: Product
) -> tuple[Column, Row, Column]:
  """The gradient of a write M' = M + u k^T with u = x - p_e M k.

  Args:
    G: The gradient of M', but for the late products column row^T.
    u: What was added along the key.
    k: The key.
    p_e: The erase probability.
    *late: What G lacks.

  Returns:
    The gradient of x; that of k, but for M^T d; and d, the column of G + d k^T,
    which is the gradient of M. That of p_e is -dot(gradient of x, M k).
  """
  du, dk = at(G, k), along(G, u)
  for column, row in late:
    du = du + column * dot(row, k)
    dk = dk + row * dot(column, u)
  return du, dk, -p_e * du


def dot(
  a: Float[Array, "*b d"], b: Float[Array, "*b d"]
) -> Float[Array, "*b 1"]:
  """The inner product, as an axis of length one."""
  return jnp.sum(a * b, axis=-1, keepdims=True)


def at(M: Memory, k: Row) -> Column:
  """M k: what is stored under a key."""
  return jnp.einsum("bhvk,bhk->bhv", M, k)


def along(M: Memory, v: Column) -> Row:
  """M^T v: the keys under which a value is stored."""
  return jnp.einsum("bhvk,bhv->bhk", M, v)
