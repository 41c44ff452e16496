"""Long Short-term Attention Memory: an LSTM whose cell is a memory matrix.

For each head, with z = W_x x + W_h h + b split into q, k, v and two gates,

  p_r, p_w = sigmoid(gates)
  M' = WR(M, mu(k), v, p_w, p_w)
  h' = RD(M', mu(q), p_r)

(paper, section Long Short-term Attention Memory). The part that depends on x
is one matrix product for the whole sequence; only W_h h is left in the loop.
The backward pass is written by hand and stores no memory per token, only one
per segment (`nam_jax.ops.segments`).
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from nam_jax.ops import masks, normalize, segments, undo, varying


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
  masks.check_mask(mask, x.shape[:2])
  dtype = initial_state.memory.dtype
  x = masks.hide(x, mask)
  tokens = jnp.moveaxis(x, 1, 0)  # before the product: x is narrower than z
  z = jnp.einsum("sbd,dho->sbho", tokens, W_x, preferred_element_type=dtype)
  z = z + bias.astype(dtype)[None, None]
  real = None if mask is None else jnp.moveaxis(mask, 1, 0)
  z, W_h, state, real = varying.alike(z, W_h.astype(dtype), initial_state, real)
  z, real = segments.split(z, real)
  hidden, state = _scan(z, W_h, state, real, reverse)
  hidden = jnp.moveaxis(segments.join(hidden, x.shape[1]), 0, 1)
  return masks.hide(hidden.astype(x.dtype), mask), state


class _Heads(NamedTuple):
  """What z says to each head, and what its gradient needs."""

  q: Float[Array, "*b v"]  # mu(q)
  k: Float[Array, "*b v"]  # mu(k)
  v: Float[Array, "*b v"]
  p_r: Float[Array, "*b 1"]
  p_w: Float[Array, "*b 1"]
  scales: tuple[normalize.Scale, normalize.Scale]  # of q and k


def _heads(z) -> _Heads:
  """z split into its parts; widths as in `lsam_width`."""
  *qkv, gates = jnp.split(z, [w * (z.shape[-1] // 3) for w in (1, 2, 3)], -1)
  q, q_scale = normalize.unit_and_scale(qkv[0])
  k, k_scale = normalize.unit_and_scale(qkv[1])
  p_r, p_w = jnp.split(jax.nn.sigmoid(gates), 2, -1)
  return _Heads(q, k, qkv[2], p_r, p_w, (q_scale, k_scale))


def _heads_back(heads, dq, dk, dv, dp_r, dp_w):
  """The gradient of z."""
  q_scale, k_scale = heads.scales
  return jnp.concatenate(
    [
      normalize.unit_back(heads.q, q_scale, dq),
      normalize.unit_back(heads.k, k_scale, dk),
      dv,
      heads.p_r * (1 - heads.p_r) * dp_r,
      heads.p_w * (1 - heads.p_w) * dp_w,
    ],
    axis=-1,
  )


def _recur(hidden, W_h):
  """W_h h."""
  g, v, h, o = W_h.shape
  b = hidden.shape[0]
  flat = hidden.reshape(b, g * v) @ W_h.reshape(g * v, h * o)
  return flat.reshape(b, h, o)


def _step(carry, token, W_h):
  z, real = token
  memory, hidden = carry
  z = z + _recur(hidden, W_h)
  q, k, v, p_r, p_w, _ = _heads(z)
  if real is not None:
    real = real[:, None, None]
    p_w = jnp.where(real, p_w, 0)
  M = undo.settle(memory)
  old = undo.at(M, k)
  u = p_w * (v - old)
  read = undo.at(M, q) + u * undo.dot(k, q)  # M' q
  new = p_r * read
  hidden = new if real is None else jnp.where(real, new, hidden)
  return (memory.add(M, (u, k)), hidden), (hidden, z, old, read)


def _step_back(carry, token, W_h, writes):
  gradient, d_hidden = carry
  heads, u, new, read, g, real, before = token
  q, k, _, p_r, p_w, _ = heads
  d_hidden = d_hidden + g
  d_new, d_kept = d_hidden, 0
  if real is not None:
    real = real[:, None, None]
    d_new, d_kept = jnp.where(real, d_hidden, 0), jnp.where(real, 0, d_hidden)
    p_w = jnp.where(real, p_w, 0)
  d_read = p_r * d_new
  dq = writes.along(before, d_read) + k * undo.dot(u, d_read)
  G, late = undo.settle(gradient), (d_read, q)
  dx, dk, d_old = undo.back(G, u, k, p_w, late)
  dk = dk + writes.along(before, d_old)
  gradient = gradient.add(G, late, (d_old, k))
  dp_r = undo.dot(d_new, read)
  dp_w = undo.dot(dx, new)
  dp_w = dp_w if real is None else jnp.where(real, dp_w, 0)
  dz = _heads_back(heads, dq, dk, p_w * dx, dp_r, dp_w)
  d_hidden = d_kept + _recur(dz, W_h.transpose(2, 3, 0, 1))
  return (gradient, d_hidden), dz


def _run(reverse, cut, z, W_h, state, real):
  """The forward pass over segments [z c ...]."""
  step = functools.partial(_step, W_h=W_h)

  def segment(state, tokens):
    start = (undo.pending(state.memory, cut=cut), state.hidden)
    (memory, last), saved = lax.scan(step, start, tokens, reverse=reverse)
    return LSAMState(undo.settle(memory), last), (saved, state.memory)

  last, (saved, starts) = lax.scan(segment, state, (z, real), reverse=reverse)
  hidden, z, old, read = saved
  residuals = (W_h, state.hidden, hidden, z, old, read, starts, real)
  return (hidden, last), residuals


def _run_back(reverse, cut, residuals, gradients):
  W_h, first, hidden, z, old, read, starts, real = residuals
  g, d_last = gradients
  before = segments.before(z.shape[1], reverse, z.dtype)

  def segment(d_state, operands):
    M, z, old, read, g, real = operands
    heads = _heads(z)
    new = heads.v - old
    u = heads.p_w * new
    if real is not None:
      u = jnp.where(real[..., None, None], u, 0)
    tokens = lax.optimization_barrier((heads, u, new))
    writes = segments.writes(M, u, heads.k)
    step = functools.partial(_step_back, W_h=W_h, writes=writes)
    start = (undo.pending(d_state.memory, 2, cut=cut), d_state.hidden)
    (gradient, d_hidden), dz = lax.scan(
      step, start, (*tokens, read, g, real, before), reverse=not reverse
    )
    return LSAMState(undo.settle(gradient), d_hidden), dz

  tokens = (starts, z, old, read, g, real)
  d_state, dz = lax.scan(segment, d_last, tokens, reverse=not reverse)
  hidden, d_flat = (lax.collapse(array, 0, 2) for array in (hidden, dz))
  ends = (hidden, first[None]) if reverse else (first[None], hidden)
  ends = jnp.concatenate(ends)
  ends = ends[1:] if reverse else ends[:-1]
  dW_h = jnp.einsum("sbgv,sbho->gvho", ends, d_flat)
  return dz, dW_h, d_state, None


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def _scan(z, W_h, state, real, reverse):
  return _scan_forward(z, W_h, state, real, reverse)[0]


def _scan_forward(z, W_h, state, real, reverse):
  run = functools.partial(_run, reverse)
  return undo.for_platform(run, W_h.shape[1], z, W_h, state, real)


def _scan_backward(reverse, residuals, gradients):
  run = functools.partial(_run_back, reverse)
  width = residuals[0].shape[1]
  return undo.for_platform(run, width, residuals, gradients)


_scan.defvjp(_scan_forward, _scan_backward)
