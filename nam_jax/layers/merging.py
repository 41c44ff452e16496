"""Neighbouring tokens become one, so that deeper blocks read fewer of them.

A sequence of s tokens becomes one of s / n: each run of n tokens is projected
to one, n d numbers to d. As in other encoders that shorten their sequence
(Dai et al. 2020, 2006.03236), most of the time is then spent on the first
blocks, which see every token.
"""

import math

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Bool, DTypeLike, Float

from nam_jax.layers.shapes import Mask, Tokens
from nam_jax.ops import masks


class MergeTokens(nn.Module):
  """Projects every run of `count` tokens to one token of the same width.

  Attributes:
    count: how many tokens become one. The last run is filled up with zeros.
    dtype: used in the computation.
  """

  count: int
  dtype: DTypeLike | None = None

  @nn.compact
  def __call__(
    self, x: Tokens, mask: Mask | None = None
  ) -> Float[Array, "b t d"]:
    """The merged tokens; where the mask is False, tokens count as zero."""
    x = _runs(masks.hide(x, mask), self.count)
    x = x.reshape(*x.shape[:2], math.prod(x.shape[2:]))
    return nn.Dense(x.shape[-1] // self.count, dtype=self.dtype)(x)


def merged_mask(mask: Mask, count: int) -> Bool[Array, "b t"]:
  """Real is every run that has a real token."""
  return jnp.any(_runs(mask, count), axis=2)


def check(merge: tuple[int, ...], num_layers: int, scan: bool) -> None:
  """Checks how many tokens an encoder merges before each of its blocks."""
  if not merge:
    return
  if len(merge) != num_layers or min(merge) < 1:
    raise ValueError(
      f"merge={merge} must have one number, 1 or more, for each of"
      f" {num_layers} layers"
    )
  if scan:
    raise ValueError(f"merge={merge} needs scan=False: blocks differ")


def _runs(x, count):
  """[b s ...] as [b t count ...], the last run filled up with zeros."""
  missing = [(0, 0), (0, -x.shape[1] % count)] + [(0, 0)] * (x.ndim - 2)
  x = jnp.pad(x, missing)
  return x.reshape(len(x), x.shape[1] // count, count, *x.shape[2:])
