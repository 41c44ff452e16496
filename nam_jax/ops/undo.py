"""Writes that can be undone: the inner loop of every recurrence.

A write M' = M + u k^T is undone by subtracting it again. So the hand-written
backward passes carry one memory back to the start instead of storing one per
token.

An outer product that a step computes is left pending and added at the start of
the next one. This is only for speed: if it were added at once, XLA would fuse
the computation of u and k into the product and repeat it for every element of
the memory.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from nam_jax.ops import hardware

Column = Float[Array, "b h v"]
Row = Float[Array, "b h k"]
Memory = Float[Array, "b h v k"]
Product = tuple[Column, Row]


class Pending(NamedTuple):
  """A memory to which the products column row^T are still to be added.

  The rows of the memory are cut into g pieces of w. On a CPU w = 4 where the
  rows are short: LLVM unrolls loops of 16 or 32 and then does not vectorise
  them, which makes the sum three times as slow.
  """

  M: Float[Array, "b h v g w"]
  products: tuple[Product, ...]


def add(M: Memory, *products: Product) -> Pending:
  """M + sum of column row^T, to be carried to the next step."""
  *lead, k = M.shape
  cut = k % 16 == 0 and hardware.on_cpu()
  w = 4 if cut else max(1, k)
  return Pending(M.reshape(*lead, k // w, w), products)


def pending(M: Memory, products: int = 1) -> Pending:
  """M with nothing to add yet, for a loop with so many products per step."""
  *lead, v, k = M.shape
  column, row = (jnp.zeros_like(M, shape=(*lead, d)) for d in (v, k))
  return add(M, *[(column, row)] * products)


def settle(memory: Pending, *products: Product) -> Memory:
  """The memory itself, with everything added, including the given products."""
  M = memory.M
  *lead, v, g, w = M.shape
  for column, row in (*memory.products, *products):
    M = M + column[..., None, None] * row.reshape(*lead, 1, g, w)
  return M.reshape(*lead, v, g * w)


def back(
  M: Memory, G: Memory, u: Column, k: Row, p_e: Float[Array, "b h 1"]
) -> tuple[Column, Row, Column]:
  """The gradient of a write M' = M + u k^T with u = x - p_e M k.

  Args:
    M: The memory before the write.
    G: The gradient of M'.
    u: What was added along the key.
    k: The key.
    p_e: The erase probability.

  Returns:
    The gradients of x and k, and the column d of G + d k^T, the gradient of M.
    That of p_e is -dot(gradient of x, M k).
  """
  du = at(G, k)
  d_old = -p_e * du
  return du, along(G, u) + along(M, d_old), d_old


def back_late(
  M: Memory,
  G: Memory,
  late: Product,
  u: Column,
  k: Row,
  p_e: Float[Array, "b h 1"],
) -> tuple[Column, Row, Column]:
  """`back` for the gradient G + column row^T, of a late product."""
  column, row = late
  du = at(G, k) + column * dot(row, k)
  d_old = -p_e * du
  dk = along(G, u) + row * dot(column, u) + along(M, d_old)
  return du, dk, d_old


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
