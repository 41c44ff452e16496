"""Losses and accuracies as (sum, weight) pairs.

A pair can be added over batches, devices and processes; dividing once, at the
end, gives the mean over all true positions however they were padded. Masks are
True at the positions that count.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

AnyArray = Array | np.ndarray
Pair = tuple[Float[Array, ""], Float[Array, ""]]


def masked_cross_entropy(
  logits: Float[Array, "*b y"],
  targets: Int[Array, "*b"],
  mask: Bool[Array, "*b"],
) -> Pair:
  """−log softmax(logits)[target], summed over the mask, in float32."""
  log_p = jax.nn.log_softmax(logits.astype(jnp.float32))
  nll = -jnp.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]
  return _count(nll, mask)


def token_accuracy(
  logits: Float[Array, "*b y"],
  targets: Int[Array, "*b"],
  mask: Bool[Array, "*b"],
) -> Pair:
  """Positions in the mask whose most likely class is the target."""
  right = jnp.argmax(logits, axis=-1) == targets
  return _count(right.astype(jnp.float32), mask)


def sequence_accuracy(
  logits: Float[Array, "*b s y"],
  targets: Int[Array, "*b s"],
  mask: Bool[Array, "*b s"],
) -> Pair:
  """Sequences right wherever the mask is True; empty masks do not count."""
  right = is_whole(jnp.argmax(logits, axis=-1) == targets, mask)
  return _count(right.astype(jnp.float32), mask.any(axis=-1))


def is_whole(
  right: Bool[AnyArray, "*b s"], mask: Bool[AnyArray, "*b s"]
) -> Bool[AnyArray, "*b"]:
  """Whether a sequence is right wherever the mask is True."""
  return (right | ~mask).all(axis=-1)


def _count(values, mask):
  return jnp.where(mask, values, 0.0).sum(), mask.sum(dtype=jnp.float32)
