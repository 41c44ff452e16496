"""Where a token stands in its sequence, as a vector that is added to it."""

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float, Int

from nam_jax.layers.shapes import Tokens


def sinusoids(
  positions: Float[Array, "*b s"], width: int
) -> Float[Array, "*b s {width}"]:
  """Positional encodings of Vaswani et al. 2017, section 3.5.

  Channel 2i is sin(p / 10000^(2i / width)), channel 2i + 1 the cosine.
  """
  channels = jnp.arange(width)
  pair = (channels // 2 * 2).astype(positions.dtype)
  angles = jnp.multiply.outer(positions, 1e4 ** (-pair / width))
  even = jnp.broadcast_to(channels % 2 == 0, angles.shape)
  return jnp.where(even, jnp.sin(angles), jnp.cos(angles))


class LearnedPositions(nn.Module):
  """Adds a learned vector to each of at most `max_len` positions."""

  max_len: int

  @nn.compact
  def __call__(
    self, x: Tokens, positions: Int[Array, "b s"] | None = None
  ) -> Tokens:
    """Adds the vectors of these positions, by default the first s."""
    table = self.param(
      "pos_embedding",
      nn.initializers.normal(0.02),
      (1, self.max_len, x.shape[-1]),
    )
    table = jnp.asarray(table, x.dtype)
    if positions is None:
      return x + table[:, : x.shape[1]]
    return x + table[0, positions]
