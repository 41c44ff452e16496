"""Loss and accuracy of classification.

For any model(inputs, mask, train=...) -> logits [b y], and batches
with `inputs`, `mask` (True at real tokens) and `label`.
"""

import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Array, Float, Int

from nam_jax.training import losses, step


def make_loss_fn(model: nn.Module) -> step.LossFn:
  """Cross-entropy and accuracy; see `step`."""

  def loss_fn(params, extra, batch, key):
    logits, new_extra = model.apply(
      {"params": params, **extra},
      batch["inputs"],
      batch["mask"],
      train=True,
      rngs={"dropout": key},
      mutable=list(extra),
    )
    loss, metrics = loss_and_metrics(logits, batch["label"])
    return loss, (metrics, new_extra)

  return loss_fn


def make_metric_fn(model: nn.Module) -> step.MetricFn:
  """Loss and accuracy of the rows of `data.eval_batches` that count."""

  def metric_fn(params, extra, batch):
    logits = model.apply(
      {"params": params, **extra}, batch["inputs"], batch["mask"]
    )
    return _metrics(logits, batch["label"], batch["row_mask"])

  return metric_fn


def loss_and_metrics(
  logits: Float[Array, "*b y"], labels: Int[Array, "*b"]
) -> tuple[losses.Pair, step.Metrics]:
  """What a `LossFn` returns when all rows count."""
  metrics = _metrics(logits, labels, jnp.ones(labels.shape, bool))
  return metrics.pop("loss"), metrics


def _metrics(logits, labels, rows):
  return {
    "loss": losses.masked_cross_entropy(logits, labels, rows),
    "accuracy": losses.token_accuracy(logits, labels, rows),
  }
