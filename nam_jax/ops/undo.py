"""Writes that can be undone: the inner loop of every recurrence.

A write M' = M + u k^T is undone by subtracting it again. So the hand-written
backward passes carry one memory back to the start instead of storing one per
token.

The outer products of a step are left pending and added at the beginning of the
next one. Reads see through them, M' q = M q + u (k . q). This is for speed
only: added at once, XLA fuses the computation of u and k into the product and
does it again for every element of the memory.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


class Pending(NamedTuple):
  """The memory M + sum_i columns[i] rows[i]^T."""

  M: Float[Array, "b h v k"]
  columns: tuple[Float[Array, "b h v"], ...]
  rows: tuple[Float[Array, "b h k"], ...]


class Write(NamedTuple):
  """M' = M + u k^T with u = x - p_e M k, as saved by a forward pass."""

  x: Float[Array, "b h v"]  # p_w v
  k: Float[Array, "b h k"]
  p_e: Float[Array, "b h 1"]
  old: Float[Array, "b h v"] | None  # M k, what was read under the key

  def u(self) -> Float[Array, "b h v"]:
    """What is added along the key."""
    return self.x - self.p_e * self.old


def pending(M: Float[Array, "b h v k"], products: int = 1) -> Pending:
  """M with nothing to add yet, ready for a loop with so many a step."""
  *lead, v, k = M.shape
  column, row = jnp.zeros((*lead, v), M.dtype), jnp.zeros((*lead, k), M.dtype)
  return Pending(M, (column,) * products, (row,) * products)


def settle(memory: Pending) -> Float[Array, "b h v k"]:
  """The memory itself, with everything added."""
  M = memory.M
  for column, row in zip(memory.columns, memory.rows, strict=True):
    M = M + column[..., :, None] * row[..., None, :]
  return M


def read(memory: Pending, q: Float[Array, "b h k"]) -> Float[Array, "b h v"]:
  """M q: what is stored under a key."""
  result = _at(memory.M, q)
  for column, row in zip(memory.columns, memory.rows, strict=True):
    result = result + column * dot(row, q)
  return result


def match(memory: Pending, v: Float[Array, "b h v"]) -> Float[Array, "b h k"]:
  """M^T v: the keys under which a value is stored."""
  result = _along(memory.M, v)
  for column, row in zip(memory.columns, memory.rows, strict=True):
    result = result + row * dot(column, v)
  return result


def write(
  memory: Pending,
  x: Float[Array, "b h v"],
  k: Float[Array, "b h k"],
  p_e: Float[Array, "b h 1"],
) -> tuple[Pending, Write]:
  """WR(M, k, v, p_w, p_e) for x = p_w v, and what undoing it needs."""
  M = settle(memory)
  saved = Write(x, k, p_e, _at(M, k))
  return Pending(M, (saved.u(),), (k,)), saved


def undo(
  memory: Pending,
  gradient: Pending,
  column: Float[Array, "b h v"],
  row: Float[Array, "b h k"],
  saved: Write,
) -> tuple[Pending, Pending, Write]:
  """From M' and its gradient back to M and its gradient.

  Args:
    memory: M', the memory after the write.
    gradient: What later tokens ask of M'.
    column: With row, what reading M' at this token asks of it: column row^T.
    row: See column.
    saved: The write.

  Returns:
    M, its gradient, and the gradients of x, k and p_e.
  """
  M, G = settle(memory), settle(gradient)
  k, u = saved.k, saved.u()
  du = _at(G, k) + column * dot(row, k)
  d_old = -saved.p_e * du
  dk = (
    _along(G, u) + row * dot(column, u) + _along(M, d_old) - k * dot(u, d_old)
  )
  grads = Write(x=du, k=dk, p_e=-dot(du, saved.old), old=None)
  before = Pending(M, (-u,), (k,))
  return before, Pending(G, (column, d_old), (row, k)), grads


def dot(
  a: Float[Array, "*b d"], b: Float[Array, "*b d"]
) -> Float[Array, "*b 1"]:
  """The inner product, as an axis of length one."""
  return jnp.sum(a * b, axis=-1, keepdims=True)


def _at(M, k):
  return jnp.einsum("bhvk,bhk->bhv", M, k)


def _along(M, v):
  return jnp.einsum("bhvk,bhv->bhk", M, v)
