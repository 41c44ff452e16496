"""Accuracy of any predictor on a set of samples, overall and by length."""

from collections.abc import Callable

import numpy as np

from algorithmic import data
from algorithmic.tasks import task
from nam_jax.training import losses, row_order

# (inputs [b s], mask [b s]) -> predicted token ids [b s]
PredictFn = Callable[[np.ndarray, np.ndarray], np.ndarray]


def predict(
  predict_fn: PredictFn, batch: task.Batch, batch_size: int
) -> np.ndarray:
  """Token ids [b s] for a whole set, in calls of exactly `batch_size` rows.

  The last call is padded with copies of the last sample.
  """
  size = len(batch.inputs)
  predictions = []
  for rows in row_order.in_order(size, batch_size):
    part = data.take(batch, rows)
    predicted = np.asarray(predict_fn(part.inputs, part.mask))
    if predicted.shape != part.inputs.shape:
      raise ValueError(
        f"predict_fn must return token ids of shape {part.inputs.shape}, "
        f"got shape {predicted.shape}"
      )
    predictions.append(predicted)
  return np.concatenate(predictions)[:size]


def evaluate(predict_fn: PredictFn, batch: task.Batch, batch_size: int) -> dict:
  """Sequence and token accuracy in [0, 1], overall and `by_digits`.

  A sequence is right if every masked position is (the NAM paper's number); a
  token accuracy is the share of masked positions that are right.
  """
  predicted = predict(predict_fn, batch, batch_size)
  right = predicted == batch.targets
  by_digits = {}
  for digits in np.unique(batch.digits):
    rows = batch.digits == digits
    by_digits[int(digits)] = _accuracy(right[rows], batch.loss_mask[rows])
  return _accuracy(right, batch.loss_mask) | {"by_digits": by_digits}


def summary(results: dict[str, dict]) -> dict:
  """The results on several sets, by set (`splits`) and by length.

  No two sets may share a length.
  """
  names = "sequence_accuracy", "token_accuracy"
  return {
    "splits": {
      split: {name: result[name] for name in names}
      for split, result in results.items()
    },
    "by_length": {
      str(digits): accuracy
      for result in results.values()
      for digits, accuracy in result["by_digits"].items()
    },
  }


def _accuracy(right: np.ndarray, loss_mask: np.ndarray) -> dict:
  """Accuracies, and the number of samples."""
  return {
    "sequence_accuracy": float(losses.is_whole(right, loss_mask).mean()),
    "token_accuracy": float(right[loss_mask].mean()),
    "samples": len(loss_mask),
  }
