"""Accuracy of any predictor on a set of samples, in all and by length."""

from collections.abc import Callable

import numpy as np

from algorithmic import data
from algorithmic.tasks import task

# (inputs [b s], tokens [b s]) -> predicted token ids [b s]
PredictFn = Callable[[np.ndarray, np.ndarray], np.ndarray]


def predict(
  predict_fn: PredictFn, batch: task.Batch, batch_size: int
) -> np.ndarray:
  """Token ids [b s] for a whole set, by calls of exactly `batch_size` rows.

  The last call repeats the last sample as often as it lacks rows.
  """
  if batch_size < 1:
    raise ValueError(f"batch_size must be at least 1, got {batch_size}")
  size = len(batch.inputs)
  predictions = []
  for start in range(0, size, batch_size):
    rows = np.minimum(np.arange(start, start + batch_size), size - 1)
    part = data.take(batch, rows)
    predicted = np.asarray(predict_fn(part.inputs, part.tokens))
    if predicted.shape != part.inputs.shape:
      raise ValueError(
        f"predict_fn must give token ids of shape {part.inputs.shape}, "
        f"got shape {predicted.shape}"
      )
    predictions.append(predicted)
  return np.concatenate(predictions)[:size]


def evaluate(predict_fn: PredictFn, batch: task.Batch, batch_size: int) -> dict:
  """Sequence and token accuracy in [0, 1], in all and `by_digits`.

  A sequence is right if every masked position is (the NAM paper's number); a
  token accuracy is the share of masked positions that are right.
  """
  predicted = predict(predict_fn, batch, batch_size)
  right = (predicted == batch.targets) & batch.mask
  by_digits = {
    int(d): _accuracy(right, batch.mask, batch.digits == d)
    for d in np.unique(batch.digits)
  }
  everything = np.ones(len(batch.digits), bool)
  return _accuracy(right, batch.mask, everything) | {"by_digits": by_digits}


def summary(results: dict[str, dict]) -> dict:
  """The results of several sets by set (`splits`) and by length.

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


def _accuracy(right: np.ndarray, mask: np.ndarray, rows: np.ndarray) -> dict:
  """Accuracies and number of the chosen samples."""
  right, mask = right[rows], mask[rows]
  return {
    "sequence_accuracy": float((right == mask).all(axis=1).mean()),
    "token_accuracy": float(right.sum() / mask.sum()),
    "samples": len(mask),
  }
