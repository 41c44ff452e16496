"""Ways to better features in stage 1; all are off by default."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from nam_jax.training import losses

TURNS = 4  # of an image, by quarters of a circle


def turn(key: jax.Array, images: Array) -> tuple[Array, Int[Array, " b"]]:
  """Turns half of the images [b h w c]; returns the quarters of each, too."""
  which_key, turn_key = jax.random.split(key)
  shape = images.shape[:1]
  turns = jax.random.randint(turn_key, shape, 1, TURNS)
  turns = jnp.where(jax.random.bernoulli(which_key, 0.5, shape), turns, 0)
  turned = jnp.stack([jnp.rot90(images, k, (1, 2)) for k in range(TURNS)])
  return turned[turns, jnp.arange(shape[0])], turns


def smooth(
  labels: Int[Array, " b"], classes: int, smoothing: float
) -> Float[Array, "b c"]:
  """One-hot targets that give a share of each to all classes."""
  return (1 - smoothing) * jax.nn.one_hot(labels, classes) + smoothing / classes


def mix(
  key: jax.Array, alpha: float, inputs: Array, targets: Float[Array, "b c"]
) -> tuple[Array, Float[Array, "b c"]]:
  """Mixup: each row and target with a share of another's.

  The share has the distribution Beta(alpha, alpha), the same for all rows.
  """
  share_key, order_key = jax.random.split(key)
  share = jax.random.beta(share_key, alpha, alpha)
  order = jax.random.permutation(order_key, len(inputs))
  inputs = inputs.astype(jnp.float32)
  inputs, targets = (
    share * x + (1 - share) * x[order] for x in (inputs, targets)
  )
  return inputs, targets


def cross_entropy(
  logits: Float[Array, "b c"], targets: Float[Array, "b c"]
) -> losses.Pair:
  """-sum of target log softmax(logits), as a sum over the rows."""
  log_p = jax.nn.log_softmax(logits.astype(jnp.float32))
  return -jnp.sum(targets * log_p), jnp.full((), len(logits), jnp.float32)


def start_average(variables: Mapping[str, Any]) -> dict[str, Any]:
  """The exponential average before the first update."""
  kept = {name: variables.get(name, {}) for name in ("params", "batch_stats")}
  return {"count": jnp.zeros(()), **kept}


def update_average(
  average: Mapping[str, Any],
  params: Any,
  batch_stats: Any,
  decay: float,
) -> dict[str, Any]:
  """The average with new values; it forgets the first ones sooner."""
  count = average["count"] + 1
  decay = jnp.minimum(decay, count / (count + 9))
  new = {"params": params, "batch_stats": batch_stats}
  old = {name: average[name] for name in new}
  moved = jax.tree.map(
    lambda a, x: decay * a + (1 - decay) * x.astype(a.dtype), old, new
  )
  return {"count": count, **moved}
