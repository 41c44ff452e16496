"""The step that all delta-rule memories share, token by token, for any type.

  M <- M diag(a);   u = p_w v - M (p_e e);   M <- M + u k^T;   o = p_r M q

Plain JAX, so that its gradients are JAX's own; the tests run it in float64.
"""

import jax.numpy as jnp
from jax import lax


def sequence(x, initial_memory, mask, first, reverse=False):
  """Outputs and memory; gates are [b s h *], `first` starts a sequence."""

  def step(M, token):
    x, real, first = token
    M = jnp.where(first[:, None, None, None], 0.0, M)
    new = M * jnp.exp(x["log_decay"])[:, :, None]
    erased = jnp.einsum("bhvk,bhk->bhv", new, x["p_e"] * x["erase_key"])
    u = x["p_w"] * x["v"] - erased
    new = new + u[..., None] * x["k"][:, :, None]
    o = x["p_r"] * jnp.einsum("bhvk,bhk->bhv", new, x["q"])
    real = real[:, None, None]
    return jnp.where(real[..., None], new, M), jnp.where(real, o, 0.0)

  def time_first(array):
    return jnp.moveaxis(array, 1, 0)

  tokens = {name: time_first(array) for name, array in x.items()}
  tokens = (tokens, time_first(mask), time_first(first))
  M, outputs = lax.scan(step, initial_memory, tokens, reverse=reverse)
  return jnp.moveaxis(outputs, 0, 1), M
