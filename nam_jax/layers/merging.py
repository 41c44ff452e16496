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
    dtype: used in the computation; the result has the input's.
  """

  count: int
  dtype: DTypeLike | None = None

  @nn.compact
  def __call__(
    self, x: Tokens, mask: Mask | None = None
  ) -> tuple[Float[Array, "b t d"], Bool[Array, "b t"] | None]:
    """The merged tokens and their mask; a padded token counts as zero."""
    runs = _runs(masks.hide(x, mask), self.count)
    runs = runs.reshape(*runs.shape[:2], math.prod(runs.shape[2:]))
    y = nn.Dense(x.shape[-1], dtype=self.dtype)(runs).astype(x.dtype)
    return y, None if mask is None else merged_mask(mask, self.count)


def merged_mask(mask: Mask, count: int) -> Bool[Array, "b t"]:
  """A run is real if one of its tokens is."""
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
  b, s, *rest = x.shape
  x = jnp.pad(x, ((0, 0), (0, -s % count), *[(0, 0)] * len(rest)))
  return x.reshape(b, x.shape[1] // count, count, *rest)
