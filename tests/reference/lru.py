"""The Linear Recurrent Unit in complex128, from the paper's equations."""

import math

import numpy as np


def states(lam, u, mask, reverse):
  """h_t = lam h_(t-1) + u_t at real tokens; u [b s n], mask [b s]."""
  h, order = np.zeros_like(u), range(u.shape[1])
  state = np.zeros_like(u[:, 0])
  for t in reversed(order) if reverse else order:
    state = np.where(mask[:, t, None], lam * state + u[:, t], state)
    h[:, t] = state
  return h


def gradients(lam, u, mask, reverse, gradient):
  """The gradients of lam and u, from h_t = sum_j lam^p u_j as a matrix.

  p is the number of real tokens after j, up to t. Complex gradients hold that
  of the real part and, times i, that of the imaginary part.
  """
  before = np.tri(u.shape[1], dtype=bool)  # j before t, or t itself
  count = np.cumsum(mask, axis=1)
  if reverse:
    before, count = before.T, np.cumsum(mask[:, ::-1], axis=1)[:, ::-1]
  power = np.where(before, count[:, :, None] - count[:, None], 0)[..., None]
  seen = (before & mask[:, None])[..., None]
  matrix = np.where(seen, lam**power, 0)
  slope = np.where(seen, power * lam ** np.maximum(power - 1, 0), 0)
  d_u = np.einsum("btn,btjn->bjn", gradient, matrix.conj())
  d_lam = np.einsum("btn,btjn,bjn->n", gradient, slope.conj(), u.conj())
  return d_lam, d_u


def layer(params, x, mask):
  """The outputs [b s d] of the whole layer."""
  p = params["params"]
  lam = np.exp(-np.exp(p["nu"]) + 1j * np.exp(p["theta"]))
  B = np.exp(p["log_gamma"]) * (p["B"][0] + 1j * p["B"][1])
  y = p["D"] * x
  for C, reverse in zip(p["C"], (False, True), strict=True):
    y = y + (states(lam, x @ B, mask, reverse) @ (C[0] + 1j * C[1])).real
  cube = y + 0.044715 * y**3
  y = y * (1 + np.tanh(math.sqrt(2 / math.pi) * cube)) / 2
  gate = y @ p["gate"]["kernel"] + p["gate"]["bias"]
  return y / (1 + np.exp(-gate))
