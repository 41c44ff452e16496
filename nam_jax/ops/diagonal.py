"""A linear recurrence whose channels do not mix, with complex states.

Complex numbers are pairs of real and imaginary parts, which every platform
multiplies fast. On a CPU the recurrence runs token by token: a step is a few
operations on what the cache holds. Elsewhere pairs of tokens are joined, then
pairs of pairs, and so on.

The gradient is the same recurrence in the other direction. If g_t is the
gradient of h_t where it is read, and d_t that of h_t with all that follows,

  d_t = g_t + conj(lambda) d_(t+1),   du_t = d_t,
  dlambda = sum_t d_t conj(h_(t-1)).
"""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from nam_jax.ops import hardware, masks, precision

Number = tuple[Float[Array, " n"], Float[Array, " n"]]  # real, imaginary
Sequence = tuple[Float[Array, "s b n"], Float[Array, "s b n"]]


def diagonal_recurrence(
  lam: Number,
  inputs: Sequence,
  *,
  mask: Bool[Array, "b s"] | None = None,
  reverse: bool = False,
) -> Sequence:
  """h_t = lambda h_(t-1) + u_t for all tokens, with h = 0 before the first.

  Sequences have time as first axis. Differentiable in reverse mode, any number
  of times; for forward mode see `linearize`.

  Args:
    lam: lambda, one per channel, as (real, imaginary).
    inputs: u, likewise.
    mask: True at real tokens. The others leave the state as it is, whatever
      they hold.
    reverse: Run from the last token to the first.

  Returns:
    The states h, in the type of the inputs; sums are float32 or wider.
  """
  s, b, _ = inputs[0].shape
  masks.check_mask(mask, (b, s))
  real = None if mask is None else mask.T[..., None]  # [s b 1]
  narrow, wide = inputs[0].dtype, precision.accumulator(inputs[0].dtype)
  if real is not None:
    inputs = jax.tree.map(lambda u: jnp.where(real, u, 0), inputs)
  lam, inputs = jax.tree.map(lambda a: a.astype(wide), (lam, inputs))
  re, im = _run(lam, inputs, real, reverse)
  return re.astype(narrow), im.astype(narrow)


@functools.partial(jax.jit, static_argnums=3)
def _run(lam, inputs, real, reverse):
  forms = (_form(recur, reverse) for recur in (_by_pairs, _by_token))
  return hardware.differentiable(*forms)(lam, inputs, real)


def _form(recur, reverse) -> hardware.Form:
  def forward(lam, inputs, real):
    states = recur(lam, inputs, real, reverse)
    return states, (lam, states, real)

  def backward(saved, gradients):
    lam, states, real = saved
    # A step back multiplies by what the step to the token after it did.
    after = None if real is None else jnp.roll(real, 1 if reverse else -1, 0)
    d = recur(_conj(lam), gradients, after, not reverse)
    before = tuple(_shift(h, reverse) for h in states)
    products = _times(d, _conj(before))
    if real is not None:
      products = tuple(jnp.where(real, p, 0) for p in products)
    return tuple(jnp.sum(p, axis=(0, 1)) for p in products), d, None

  return hardware.Form(forward, backward)


def _by_token(lam, inputs, real, reverse):
  def step(h, token):
    u, real = token
    h = _plus(_times(_factor(lam, real), h), u)
    return h, h

  start = tuple(jnp.zeros_like(u, shape=u.shape[1:]) for u in inputs)
  return lax.scan(step, start, (inputs, real), reverse=reverse)[1]


def _by_pairs(lam, inputs, real, reverse):
  def join(first, second):
    (a, u), (b, v) = first, second
    return _times(b, a), _plus(_times(b, u), v)

  factors = _factor(tuple(part[None] for part in lam), real)
  s = inputs[0].shape[0]
  factors = tuple(jnp.broadcast_to(a, (s, *a.shape[1:])) for a in factors)
  return lax.associative_scan(join, (factors, inputs), reverse=reverse)[1]


def _factor(lam, real):
  """What a state is multiplied by: lambda, or 1 at padding."""
  re, im = (part[None] for part in lam)
  if real is None:
    return re, im
  return jnp.where(real, re, 1), jnp.where(real, im, 0)


def _shift(h, reverse):
  """The states before each token."""
  start = jnp.zeros_like(h, shape=(1, *h.shape[1:]))
  if reverse:
    return jnp.concatenate([h, start])[1:]
  return jnp.concatenate([start, h])[:-1]


def _plus(a, b):
  return a[0] + b[0], a[1] + b[1]


def _times(a, b):
  return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _conj(a):
  return a[0], -a[1]
