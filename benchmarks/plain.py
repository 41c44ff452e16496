"""Plain `lax.scan` twins under automatic differentiation: slow and obvious."""

import jax
import jax.numpy as jnp
from jax import lax

from nam_jax.ops import addressing, memory, normalize


def memory_scan(q, k, v, p_r, p_w, p_e, initial):
  """The definition of `nam_jax.memory_scan`, gates [b s h]."""

  def step(M, token):
    q, k, v, p_r, p_w, p_e = token
    M = memory.write(M, k, v, p_w, p_e)
    return M, memory.read(M, q, p_r)

  tokens = tuple(jnp.moveaxis(a, 1, 0) for a in (q, k, v, p_r, p_w, p_e))
  M, outputs = lax.scan(step, initial, tokens)
  return jnp.moveaxis(outputs, 0, 1), M


def lsam_scan(x, W_x, bias, W_h, state, mask=None, reverse=False):
  """The definition of `lsam_scan`."""
  width = W_h.shape[1]
  z = jnp.einsum("bsd,dho->bsho", x, W_x) + bias[None, None]

  def step(state, token):
    z, real = token
    M, hidden = state
    z = z + jnp.einsum("bgv,gvho->bho", hidden, W_h)
    q, k, v = (z[..., i * width : (i + 1) * width] for i in range(3))
    p_r, p_w = (jax.nn.sigmoid(z[..., 3 * width + i]) for i in range(2))
    M = memory.write(M, normalize.unit(k), v, p_w, p_w)
    output = memory.read(M, normalize.unit(q), p_r)
    new = type(state)(M, output)
    return select(real, new, state), select(real, output, 0 * output)

  tokens = (jnp.moveaxis(z, 1, 0), time_first(mask))
  state, outputs = lax.scan(step, state, tokens, reverse=reverse)
  return jnp.moveaxis(outputs, 0, 1), state


def tape_scan(
  controls, tape, transitions, normalize_heads=True, sharpen=1.0, mask=None
):
  """The definition of `tape_scan`."""

  def step(tape, token):
    value, key, query, p_r, p_w, p_e, actions, real = token
    r_head, w_head = tape.heads
    T = memory.write(tape.values, w_head, value, p_w, p_e)
    K = memory.write(tape.keys, w_head, key, p_w, p_e)
    output = memory.read(T, r_head, p_r)
    found = memory.read(jnp.swapaxes(K, -1, -2), query)
    heads = sum(
      actions[..., i, None] * transition.rule(tape.heads, found)
      for i, transition in enumerate(transitions)
    )
    if sharpen != 1:
      heads = jnp.sign(heads) * jnp.abs(heads) ** sharpen
    heads = normalize.unit(heads) if normalize_heads else heads
    written = select(real, (T, K), (tape.values, tape.keys))
    if real is not None:
      heads = jnp.where(real[None, :, None, None], heads, tape.heads)
    output = select(real, output, 0 * output)
    return type(tape)(*written, heads), (output, tape.heads)

  *others, actions = controls
  tokens = [jnp.moveaxis(a, 1, 0) for a in others]
  tokens += [jnp.moveaxis(actions, 2, 0), time_first(mask)]
  tape, (outputs, heads) = lax.scan(step, tape, tuple(tokens))
  return jnp.moveaxis(outputs, 0, 1), tape, jnp.moveaxis(heads, 2, 0)


def content_weighting(memory, keys, strengths):
  """The definition of `addressing.content_weighting`."""
  cosines = jnp.einsum(
    "...rk,...nk->...rn", normalize.unit(keys), normalize.unit(memory)
  )
  return jax.nn.softmax(strengths[..., None] * cosines, axis=-1)


def allocation_weighting(usage):
  """The definition of `addressing.allocation_weighting`."""
  order = jnp.argsort(lax.stop_gradient(usage), axis=-1, stable=True)
  by_usage = jnp.take_along_axis(usage, order, axis=-1)
  used_before = jnp.cumprod(by_usage, axis=-1)[..., :-1]
  ones = jnp.ones_like(usage[..., :1])
  used_before = jnp.concatenate([ones, used_before], axis=-1)
  allocation = (1 - by_usage) * used_before
  places = jnp.argsort(order, axis=-1)
  return jnp.take_along_axis(allocation, places, axis=-1)


def read(memory, weights):
  """The definition of `addressing.read`."""
  return jnp.einsum("...rn,...nk->...rk", weights, memory)


def update_and_follow(link, precedence, write_weights, read_weights):
  """The definition of `addressing.update_and_follow`."""
  link = addressing.update_link(link, precedence, write_weights)
  backward = addressing.backward_weighting(link, read_weights)
  return link, backward, addressing.forward_weighting(link, read_weights)


def time_first(mask):
  return None if mask is None else jnp.moveaxis(mask, 1, 0)


def select(real, new, old):
  """The new arrays where a token is real, the old ones where it is not."""
  if real is None:
    return new

  def one(new, old):
    return jnp.where(real.reshape(-1, *[1] * (new.ndim - 1)), new, old)

  return jax.tree.map(one, new, old)
