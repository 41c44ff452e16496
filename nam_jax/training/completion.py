"""Loss and predictions of masked sequence completion.

For any model(inputs [b s], mask [b s], train=...) -> logits
[b s y], and batches with `inputs`, `targets`, `mask` (True at real tokens) and
`loss_mask` (True at the positions that count).
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from nam_jax.training import losses, step
from nam_jax.training.config import TrainConfig
from nam_jax.training.state import TrainState

Predict = Callable[[TrainState, np.ndarray, np.ndarray], np.ndarray]


def make_loss_fn(model: nn.Module) -> step.LossFn:
  """Cross-entropy over the positions of `loss_mask`; see `step`."""

  def loss_fn(params, extra, batch, key):
    logits: Any = model.apply(
      {"params": params, **extra},
      batch["inputs"],
      batch["mask"],
      train=True,
      rngs={"dropout": key},
    )
    answer = logits, batch["targets"], batch["loss_mask"]
    metrics = {"sequence_accuracy": losses.sequence_accuracy(*answer)}
    return losses.masked_cross_entropy(*answer), (metrics, extra)

  return loss_fn


def make_predict(model: nn.Module, config: TrainConfig) -> Predict:
  """(state, inputs [b s], mask [b s]) -> most likely tokens [b s]."""

  def most_likely(params, extra, batch):
    variables = {"params": params, **extra}
    logits: Any = model.apply(variables, batch["inputs"], batch["mask"])
    return jnp.argmax(logits, axis=-1)

  eval_step = step.make_eval_step(most_likely, config)

  def predict(state, inputs, mask):
    return np.asarray(eval_step(state, {"inputs": inputs, "mask": mask}))

  return predict
