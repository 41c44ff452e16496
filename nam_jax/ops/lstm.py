"""A whole LSTM sequence with a hand-written backward pass.

The automatic gradient of a scan adds to the recurrent kernel's gradient at
every step. Here the forward scan keeps gates and states; the part of the
backward pass that does not depend on the recurrence is computed for all tokens
at once, the backward scan does one matmul per step, and the kernel's gradient
is one matmul after it. States and sums are float32 even for bfloat16 inputs.

Notation: i input width, d state width, g = 4 d gate width. The gates lie side
by side as (input, forget, candidate, output), each of width d.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, DTypeLike, Float

from nam_jax.ops import masks, varying


class LSTMState(NamedTuple):
  """What an LSTM carries from one token to the next."""

  cell: Float[Array, "b d"]
  hidden: Float[Array, "b d"]


def zero_state(
  batch: int, features: int, dtype: DTypeLike = jnp.float32
) -> LSTMState:
  """The state before the first token."""
  zeros = jnp.zeros((batch, features), dtype)
  return LSTMState(zeros, zeros)


def lstm(
  x: Float[Array, "b s i"],
  input_kernel: Float[Array, "i g"],
  recurrent_kernel: Float[Array, "d g"],
  bias: Float[Array, " g"],
  initial_state: LSTMState,
  *,
  mask: Bool[Array, "b s"] | None = None,
  reverse: bool = False,
) -> tuple[Float[Array, "b s d"], LSTMState]:
  """Runs an LSTM (Hochreiter & Schmidhuber 1997; Gers et al. 2000).

  i, f, o = σ(W x + U h + b), g = tanh(W x + U h + b),
  c' = f ∘ c + i ∘ g, h' = o ∘ tanh(c').

  Tokens whose mask is False leave the state untouched and output zero. With
  `reverse` the state runs from the last token to the first. Differentiable
  in reverse mode, any number of times; for forward mode see `linearize`.
  """
  b, s, i = x.shape
  masks.check_mask(mask, (b, s))
  x = masks.hide(x, mask)
  flat = jnp.swapaxes(x, 0, 1).reshape(s * b, i)
  inputs = _matmul(flat, input_kernel, initial_state.cell.dtype)
  inputs = inputs + bias.astype(inputs.dtype)[None]
  inputs = inputs.reshape(s, b, bias.size)
  keep = None if mask is None else mask.T[..., None]  # [s b 1]
  operands = varying.alike(inputs, recurrent_kernel, initial_state, keep)
  outputs, state = _scan(reverse, *operands)
  return jnp.swapaxes(outputs, 0, 1).astype(x.dtype), state


def _matmul(x, kernel, dtype):
  x = x.astype(kernel.dtype)
  return jnp.matmul(x, kernel, preferred_element_type=dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _scan(reverse, inputs, kernel, initial, keep):
  return _forward(reverse, inputs, kernel, initial, keep)[0]


def _forward(reverse, inputs, kernel, initial, keep):
  d, dtype = kernel.shape[0], inputs.dtype
  # σ(a) = tanh(a / 2) / 2 + 1 / 2: one tanh over all four gates.
  scale = jnp.repeat(jnp.array([0.5, 0.5, 1.0, 0.5], dtype), d)[None]

  def step(state, inputs):
    a, keep = inputs
    a = a + _matmul(state.hidden, kernel, dtype)
    gates = jnp.tanh(scale * a) * scale + (1 - scale)
    i, f, g, o = jnp.split(gates, 4, axis=-1)
    cell = f * state.cell + i * g
    new = LSTMState(cell, o * jnp.tanh(cell))
    if keep is not None:
      new = jax.tree.map(functools.partial(jnp.where, keep), new, state)
    return new, (new, gates)

  final, (states, gates) = lax.scan(
    step, initial, (inputs, keep), reverse=reverse
  )
  outputs = states.hidden
  if keep is not None:
    outputs = jnp.where(keep, outputs, 0)
  return (outputs, final), (kernel, initial, keep, states, gates)


def _previous(initial, states, reverse):
  if reverse:
    return jnp.concatenate([states, initial[None]])[1:]
  return jnp.concatenate([initial[None], states])[:-1]


def _backward(reverse, residuals, gradients):
  kernel, initial, keep, states, gates = residuals
  d_outputs, d_final = gradients
  cell = _previous(initial.cell, states.cell, reverse)
  hidden = _previous(initial.hidden, states.hidden, reverse)
  i, f, g, o = jnp.split(gates, 4, axis=-1)
  tanh_cell = jnp.tanh(states.cell)
  slopes = [
    g * i * (1 - i),
    cell * f * (1 - f),
    i * (1 - g**2),
    tanh_cell * o * (1 - o),
  ]
  slopes = jnp.concatenate(slopes, axis=-1)  # d(c, h) / d(gate inputs)
  through = o * (1 - tanh_cell**2)  # dh / dc
  if keep is not None:
    d_outputs, slopes, through = (
      jnp.where(keep, x, 0) for x in (d_outputs, slopes, through)
    )
    f = jnp.where(keep, f, 1)
  kernel_t = kernel.T

  def step(state, inputs):
    d_output, slopes, through, f, keep = inputs
    d_hidden = state.hidden + d_output
    d_cell = state.cell + d_hidden * through
    d_input = slopes * jnp.concatenate([d_cell] * 3 + [d_hidden], axis=-1)
    d_before = _matmul(d_input, kernel_t, d_input.dtype)
    if keep is not None:
      d_before = jnp.where(keep, d_before, state.hidden)
    return LSTMState(d_cell * f, d_before), d_input

  d_initial, d_inputs = lax.scan(
    step, d_final, (d_outputs, slopes, through, f, keep), reverse=not reverse
  )
  s, b, d = hidden.shape
  hidden = hidden.reshape(s * b, d).T.astype(kernel.dtype)
  d_flat = d_inputs.reshape(s * b, 4 * d).astype(kernel.dtype)
  return d_inputs, hidden @ d_flat, d_initial, None


_scan.defvjp(_forward, _backward)
