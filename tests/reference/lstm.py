"""The LSTM as a plain scan, differentiated automatically."""

import jax
import jax.numpy as jnp
from jax import lax

from nam_jax.ops import lstm as ops


def lstm(
  x, input_kernel, recurrent_kernel, bias, initial_state, *, mask, reverse
):
  """Same signature and result as `nam_jax.ops.lstm.lstm`."""

  def step(state, inputs):
    x, real = inputs
    a = x @ input_kernel + state.hidden @ recurrent_kernel + bias[None]
    i, f, g, o = jnp.split(a, 4, axis=-1)
    cell = jax.nn.sigmoid(f) * state.cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
    new = ops.LSTMState(
      jnp.where(real[:, None], cell, state.cell),
      jnp.where(real[:, None], hidden, state.hidden),
    )
    return new, jnp.where(real[:, None], hidden, 0)

  if mask is None:
    mask = jnp.ones(x.shape[:2], bool)
  state, outputs = lax.scan(
    step, initial_state, (x.swapaxes(0, 1), mask.T), reverse=reverse
  )
  return outputs.swapaxes(0, 1), state
