"""The two primitives of neural attention memory, one step at a time.

A memory is a matrix M [..., v, k]. Keys and queries are unit vectors
(`nam_jax.unit`); probabilities lie in [0, 1] and are scalars or arrays with the
leading axes of M. Note for readers of other delta-rule code: several libraries
keep the transpose, [k, v].
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

Probability = Float[Array, "*b"] | Float[Array, ""] | float | int


def read(
  M: Float[Array, "*b v k"], q: Float[Array, "*b k"], p_r: Probability = 1.0
) -> Float[Array, "*b v"]:
  """RD(M, q, p_r) = p_r M q  (paper, section NAM Read and Write Primitives)."""
  _check(M, q=(q, "k"), p_r=(p_r, ""))
  return scale(p_r, jnp.einsum("...vk,...k->...v", M, q))


def write(
  M: Float[Array, "*b v k"],
  k: Float[Array, "*b k"],
  v: Float[Array, "*b v"],
  p_w: Probability = 1.0,
  p_e: Probability = 1.0,
) -> Float[Array, "*b v k"]:
  """WR(M, k, v, p_w, p_e) = M + p_w v k^T - p_e M k k^T  (same section).

  With |k| = 1 and p_w = p_e = 1, reading k afterwards returns v (Theorem 1).
  """
  _check(M, k=(k, "k"), v=(v, "v"), p_w=(p_w, ""), p_e=(p_e, ""))
  u = scale(p_w, v) - scale(p_e, read(M, k))
  return M + u[..., :, None] * k[..., None, :]


def scale(
  p: Float[Array, "..."] | float | int, x: Float[Array, "*b d"]
) -> Float[Array, "*b d"]:
  """p x, for one probability or one per vector."""
  p = jnp.asarray(p, x.dtype)
  return (p if p.ndim == 0 else p[..., None]) * x


def _check(M, **arguments):
  """Checks that each argument has M's leading axes, then its own, if any."""
  if M.ndim < 2:
    raise ValueError(f"M must have axes [..., v, k], got shape {M.shape}")
  *lead, v, k = M.shape
  for name, (value, axis) in arguments.items():
    if not axis and jnp.ndim(value) == 0:
      continue
    expected = (*lead, *{"v": (v,), "k": (k,), "": ()}[axis])
    if jnp.shape(value) != expected:
      raise ValueError(
        f"{name} must have shape {expected} for M of shape {M.shape}, got"
        f" {jnp.shape(value)}"
      )
