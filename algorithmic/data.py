"""The splits of the NAM paper (section Algorithmic Tasks), and its batches.

Every set is a fixed `Batch`, padded to one width, drawn from its own random
stream. The validation sets depend on nothing but the task, so that all models
and seeds meet the same ones. `id` shares its lengths with `train`; no other two
splits share a length.
"""

from typing import NamedTuple

import numpy as np

from algorithmic.tasks import task
from nam_jax.training import row_order


class Split(NamedTuple):
  """Digit counts low..high, spread evenly over `size` samples."""

  stream: int
  low: int
  high: int
  size: int


SPLITS = {
  "train": Split(1, 1, 10, 25_600),
  "id": Split(2, 5, 10, 2_048),
  "od_easy": Split(3, 11, 13, 2_048),
  "od_hard": Split(4, 14, 16, 2_048),
}
VALIDATION_SPLITS = ("id", "od_easy", "od_hard")

_VALIDATION_SEED = 0
_ORDER_STREAM, _REPLACEMENT_STREAM, _SWEEP_STREAM = 5, 6, 7
# Free columns, so that the longest samples of a split shift too.
_ROOM = 4


def split_width(a_task: task.Task, name: str) -> int:
  """Tokens per row of a split."""
  return a_task.sequence_length(_split(name).high) + _ROOM


def training_set(
  a_task: task.Task, seed: int, width: int | None = None
) -> task.Batch:
  """The 25,600 training samples of a seed; `width` defaults to the split's.

  A wider set lets samples shift over all columns that longer ones will use,
  which learned positions need.
  """
  return _draw(a_task, "train", seed, width)


def validation_set(
  a_task: task.Task, name: str, width: int | None = None
) -> task.Batch:
  """One of VALIDATION_SPLITS, the same for every model and training seed."""
  if name not in VALIDATION_SPLITS:
    known = ", ".join(VALIDATION_SPLITS)
    raise ValueError(f"unknown validation split {name!r}; known: {known}")
  return _draw(a_task, name, _VALIDATION_SEED, width)


def sweep_set(a_task: task.Task, digits: int, size: int = 256) -> task.Batch:
  """Samples of one length, however far past training."""
  rng = np.random.default_rng([_VALIDATION_SEED, _SWEEP_STREAM, digits])
  width = a_task.sequence_length(digits) + _ROOM
  return a_task.sample(rng, np.full(size, digits), width)


def take(data: task.Batch, rows: np.ndarray) -> task.Batch:
  """The chosen samples."""
  return task.Batch(*(field[rows] for field in data))


def training_rows(
  data: task.Batch, seed: int, step: int, batch_size: int, max_digits: int
) -> np.ndarray:
  """The rows [b] of the training set that make up one step's batch.

  Steps walk through the set in a new random order each epoch. Rows with more
  than `max_digits` give way to random allowed ones. Seed and step determine
  the outcome, so a resumed run needs no other state.
  """
  size = len(data.digits)
  rows = row_order.shuffled(size, batch_size, (seed, _ORDER_STREAM), step)
  allowed = np.flatnonzero(data.digits <= max_digits)
  if allowed.size == 0:
    raise ValueError(f"no sample has at most {max_digits} digits")
  rng = np.random.default_rng([seed, _REPLACEMENT_STREAM, step])
  replacement = rng.choice(allowed, batch_size)
  return np.where(data.digits[rows] <= max_digits, rows, replacement)


def training_batch(
  data: task.Batch, seed: int, step: int, batch_size: int, max_digits: int
) -> task.Batch:
  """One step's batch; see `training_rows`."""
  return take(data, training_rows(data, seed, step, batch_size, max_digits))


def longest_width(a_task: task.Task) -> int:
  """Tokens per row of the split with the longest samples."""
  return max(split_width(a_task, name) for name in SPLITS)


def _draw(
  a_task: task.Task, name: str, seed: int, width: int | None
) -> task.Batch:
  split = _split(name)
  rng = np.random.default_rng([seed, split.stream])
  digits = np.resize(np.arange(split.low, split.high + 1), split.size)
  if width is None:
    width = split_width(a_task, name)
  return a_task.sample(rng, digits, width)


def _split(name: str) -> Split:
  if name not in SPLITS:
    raise ValueError(f"unknown split {name!r}; known: {', '.join(SPLITS)}")
  return SPLITS[name]
