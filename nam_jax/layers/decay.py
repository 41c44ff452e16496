"""How fast a memory fades: one decay per head or per key channel.

A memory is multiplied by exp(log_decay) before every write, with

  log_decay = -exp(scale) softplus(x W + bias)

when it depends on the token, as in Gated DeltaNet and Kimi Delta Attention, and
-softplus(bias) when it does not. The bias starts so that a memory lasts for 10
to 1,000 tokens: steps of 0.001 to 0.1, evenly spaced in their logarithms, one
per head, times n + 1/2 for key channel n, as in HiPPO, but at most 1/2.
"""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from jaxtyping import Array, DTypeLike, Float

from nam_jax.layers import parameters

DECAYS = (None, "head", "channel")
SOURCES = ("token", "learned", "fixed")
_STEPS = 0.001, 0.1
_FASTEST = 0.5  # fades by no more than exp(-0.5) a token before training


def time_scales(num_heads: int, width: int | None = None) -> np.ndarray:
  """-log_decay before training, [h], or [h k] for channels of this width."""
  slow, fast = _STEPS
  steps = slow * (fast / slow) ** ((np.arange(num_heads) + 0.5) / num_heads)
  if width is None:
    return steps
  return np.minimum(np.multiply.outer(steps, np.arange(width) + 0.5), _FASTEST)


def retention(num_heads: int) -> np.ndarray:
  """The log decay of RetNet, log(1 - 2^(-5 - h)) for head h."""
  return np.log1p(-(2.0 ** (-5 - np.arange(num_heads))))


def table(
  rates: np.ndarray, tokens: int | None
) -> dict[str, parameters.Parameter]:
  """Parameters that start at these rates; from tokens of this width, if any."""

  def start(key, shape, dtype):
    del key, shape  # nothing is random
    return jnp.asarray(np.log(np.expm1(rates)), dtype)

  bias = parameters.Parameter(rates.shape, start)
  if tokens is None:
    return {"bias": bias}
  zeros = nn.initializers.zeros
  return {
    "kernel": parameters.Parameter((tokens, *rates.shape), zeros),
    "bias": bias,
    "scale": parameters.Parameter(rates.shape[:1], zeros),
  }


def from_token(
  group, x: Float[Array, "b s d"], dtype: DTypeLike | None
) -> Float[Array, "b s *h"]:
  """-exp(scale) softplus(x W + bias), in float32 or wider."""
  z = parameters.project({"kernel": group["kernel"]}, x, dtype)
  bias, scale = group["bias"], group["scale"]
  scale = scale.reshape(scale.shape + (1,) * (bias.ndim - 1))
  z = z.astype(bias.dtype) + bias[None, None]
  return -jnp.exp(scale)[None, None] * jax.nn.softplus(z)


def constant(group) -> Float[Array, "*h"]:
  """-softplus(bias): learned, but the same for all tokens."""
  return -jax.nn.softplus(group["bias"])
