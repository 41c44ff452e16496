"""A short causal convolution along the sequence, one filter per channel.

Every token is mixed with the few before it. Padding is left out as if it were
not there: real tokens are first moved together, and moved back afterwards.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from nam_jax.ops import masks, precision
from nam_jax.ops.masks import Mask


def short_convolution(
  x: Float[Array, "b s *c"],
  kernel: Float[Array, "w #b *c"],
  tail: Float[Array, "b t *c"],
  mask: Mask | None = None,
) -> tuple[Float[Array, "b s *c"], Float[Array, "b t *c"]]:
  """y_t = sum_i kernel_i x_(t - w + 1 + i), over real tokens.

  Args:
    x: The tokens.
    kernel: One weight per place, row and channel; the last is a token's own.
    tail: The w - 1 real tokens before x; zeros at the start of a sequence.
    mask: True at real tokens. The others become zero.

  Returns:
    The outputs, and the tail to continue from.
  """
  width, length = kernel.shape[0], x.shape[1]
  if mask is not None:
    x = _take(x, jnp.argsort(~mask, axis=1, stable=True))
  past = jnp.concatenate([tail.astype(x.dtype), x], axis=1)
  wide, kernel = precision.widen(past), precision.widen(kernel)
  y = sum(kernel[i][:, None] * wide[:, i : i + length] for i in range(width))
  y = jnp.asarray(y, x.dtype)
  if mask is None:
    return y, past[:, length:]
  place = jnp.cumsum(mask, axis=1, dtype=jnp.int32)
  y = masks.hide(_take(y, jnp.maximum(place - 1, 0)), mask)
  count = jnp.sum(mask, axis=1, dtype=jnp.int32)
  return y, _take(past, count[:, None] + jnp.arange(width - 1)[None])


def _take(x: Float[Array, "b s *c"], index: Int[Array, "b t"]):
  """x at these places of each row."""
  index = index.reshape(index.shape + (1,) * (x.ndim - 2))
  return jnp.take_along_axis(x, index, axis=1)
