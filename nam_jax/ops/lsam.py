"""Long Short-term Attention Memory: an LSTM whose cell is a memory matrix.

For each head, with z = W_x x + W_h h + b split into q, k, v and two gates,

  p_r, p_w = sigmoid(gates)
  M' = WR(M, mu(k), v, p_w, p_w)
  h' = RD(M', mu(q), p_r)

(paper, section Long Short-term Attention Memory). The part that depends on x
is one matrix product for the whole sequence; only W_h h is left in the loop.
The backward pass is written by hand: like that of `memory_scan` it undoes the
writes instead of storing a memory per token.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from nam_jax.ops import normalize, undo


class LSAMState(NamedTuple):
  """What an LSAM carries from token to token, in float32 or wider."""

  memory: Float[Array, "b h v v"]
  hidden: Float[Array, "b h v"]


def lsam_width(v: int) -> int:
  """Width of z for one head: q, k and v, and the gates p_r and p_w."""
  return 3 * v + 2


@functools.partial(jax.jit, static_argnames="reverse")
def lsam_scan(
  x: Float[Array, "b s d"],
  W_x: Float[Array, "d h o"],
  bias: Float[Array, "h o"],
  W_h: Float[Array, "h v h o"],
  initial_state: LSAMState,
  *,
  mask: Bool[Array, "b s"] | None = None,
  reverse: bool = False,
) -> tuple[Float[Array, "b s h v"], LSAMState]:
  """The recurrence over a sequence; o = `lsam_width(v)`.

  A masked token leaves the state as it is and outputs zero.

  Returns:
    The hidden states, in the type of x, and the state after the last step.
  """
  dtype = initial_state.memory.dtype
  tokens = jnp.moveaxis(x, 1, 0)  # before the product: x is narrower than z
  z = jnp.einsum("sbd,dho->sbho", tokens, W_x, preferred_element_type=dtype)
  z = z + bias.astype(dtype)[None, None]
  real = None if mask is None else jnp.moveaxis(mask, 1, 0)
  hidden, state = _scan(z, W_h.astype(dtype), initial_state, real, reverse)
  hidden = jnp.moveaxis(hidden, 0, 1).astype(x.dtype)
  if mask is not None:
    hidden = jnp.where(mask[..., None, None], hidden, 0)
  return hidden, state


def _heads(z):
  """z split into mu(q), mu(k), v, p_r, p_w; widths as in `lsam_width`."""
  *qkv, gates = jnp.split(z, [w * (z.shape[-1] // 3) for w in (1, 2, 3)], -1)
  q, k, v = qkv
  p_r, p_w = jnp.split(jax.nn.sigmoid(gates), 2, -1)
  return normalize.unit(q), normalize.unit(k), v, p_r, p_w


def _recur(hidden, W_h):
  """W_h h."""
  h, v, _, o = W_h.shape
  flat = hidden.reshape(-1, h * v) @ W_h.reshape(h * v, h * o)
  return flat.reshape(-1, h, o)


def _step(carry, token, W_h):
  z, real = token
  memory, hidden = carry
  z = z + _recur(hidden, W_h)
  q, k, v, p_r, p_w = _heads(z)
  if real is not None:
    real = real[:, None, None]
    p_w = jnp.where(real, p_w, 0)
  M = undo.settle(memory)
  old = undo.at(M, k)
  u = p_w * (v - old)
  read = undo.at(M, q) + u * undo.dot(k, q)  # M' q
  new = p_r * read
  hidden = new if real is None else jnp.where(real, new, hidden)
  return (undo.add(M, (u, k)), hidden), (hidden, z, old, read)


def _step_back(carry, token, W_h):
  M, gradient, d_hidden = carry
  z, old, read, g, real = token
  (q, k, v, p_r, p_w), pull = jax.vjp(_heads, z)
  d_hidden = d_hidden + g
  d_new, d_kept = d_hidden, 0
  if real is not None:
    real = real[:, None, None]
    d_new, d_kept = jnp.where(real, d_hidden, 0), jnp.where(real, 0, d_hidden)
    p_w = jnp.where(real, p_w, 0)
  d_read = p_r * d_new
  u = p_w * (v - old)
  M = undo.settle(M, (-u, k))
  dq = undo.along(M, d_read) + k * undo.dot(u, d_read)
  G, late = undo.settle(gradient), (d_read, q)
  dx, dk, d_old = undo.back_late(M, G, late, u, k, p_w)
  gradient = undo.add(G, late, (d_old, k))
  dp_r = undo.dot(d_new, read)
  dp_w = undo.dot(dx, v - old)
  dp_w = dp_w if real is None else jnp.where(real, dp_w, 0)
  (dz,) = pull((dq, dk, p_w * dx, dp_r, dp_w))
  d_hidden = d_kept + _recur(dz, W_h.transpose(2, 3, 0, 1))
  return (undo.add(M), gradient, d_hidden), dz


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def _scan(z, W_h, state, real, reverse):
  return _scan_forward(z, W_h, state, real, reverse)[0]


def _scan_forward(z, W_h, state, real, reverse):
  step = functools.partial(_step, W_h=W_h)
  start = (undo.pending(state.memory), state.hidden)
  (memory, last), (hidden, z, old, read) = lax.scan(
    step, start, (z, real), reverse=reverse
  )
  M = undo.settle(memory)
  residuals = (W_h, state.hidden, hidden, z, old, read, M, real)
  return (hidden, LSAMState(M, last)), residuals


def _scan_backward(reverse, residuals, gradients):
  W_h, first, hidden, z, old, read, M, real = residuals
  g, (dM, d_hidden) = gradients
  step = functools.partial(_step_back, W_h=W_h)
  start = (undo.add(M), undo.pending(dM, 2), d_hidden)
  (_, gradient, d_first), dz = lax.scan(
    step, start, (z, old, read, g, real), reverse=not reverse
  )
  ends = (hidden[1:], first[None]) if reverse else (first[None], hidden[:-1])
  dW_h = jnp.einsum("sbgv,sbho->gvho", jnp.concatenate(ends), dz)
  return dz, dW_h, LSAMState(undo.settle(gradient), d_first), None


_scan.defvjp(_scan_forward, _scan_backward)
