"""Masks: which tokens are real.

A mask is `[b s]`, boolean, True at real tokens. What stands at the others may
be anything, NaN included: arrays are set to zero there before anything else
reads them, so that it reaches neither an output nor a gradient.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Shaped

Mask = Bool[Array, "b s"]


def hide(
  array: Shaped[Array, "b s ..."], mask: Mask | None
) -> Shaped[Array, "b s ..."]:
  """The array with zeros at masked tokens."""
  if mask is None:
    return array
  mask = mask.reshape(mask.shape + (1,) * (array.ndim - 2))
  return jnp.where(mask, array, jnp.zeros((), array.dtype))


def last_real(mask: Mask) -> Int[Array, " b"]:
  """Place of the last real token in each row, -1 if there is none."""
  return jnp.max(jnp.where(mask, jnp.arange(mask.shape[1])[None], -1), axis=1)


def check_mask(mask, shape: tuple[int, ...], name: str = "mask") -> None:
  """Checks that a mask, if there is one, is boolean and has this shape."""
  if mask is None:
    return
  if mask.dtype != bool:
    raise ValueError(
      f"{name} must be boolean, True at real tokens, got {mask.dtype}; for an"
      f" additive mask (0 and -1e9), pass {name} == 0"
    )
  if mask.shape != shape:
    raise ValueError(
      f"{name} must have shape {shape} (batch, sequence), got {mask.shape}"
    )
