"""Which lengths are trained on and which are tested, and the batches.

A protocol has a training set and sets to test on: those of the NAM paper
(section Algorithmic Tasks), or of another benchmark. Every set is a fixed
`Batch`, padded to one width, drawn from its own random stream. The test sets
depend only on the task, so all models and seeds are tested on the same ones.
`id` shares its lengths with `train`; no other two splits share a length. Short
samples come first; see `max_digits`.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from algorithmic.tasks import task
from nam_jax import spelling
from nam_jax.training import row_order


class Split(NamedTuple):
  """Digit counts low..high, spread evenly over `size` samples."""

  stream: int
  low: int
  high: int
  size: int


class Protocol(NamedTuple):
  """What a model is trained on, and what it is tested on."""

  splits: Mapping[str, Split]  # "train", and the sets to test on
  during: tuple[str, ...]  # the sets that it is tested on during training
  fresh: bool = True  # every epoch has a training set of its own
  one_width: bool = False  # pad all sets to test on to the same width

  @property
  def tests(self) -> tuple[str, ...]:
    """The sets to test on."""
    return tuple(name for name in self.splits if name != "train")

  @property
  def longest(self) -> int:
    """Most digits in any set."""
    return max(split.high for split in self.splits.values())


SPLITS = {
  "train": Split(1, 1, 10, 25_600),
  "id": Split(2, 5, 10, 2_048),
  "od_easy": Split(3, 11, 13, 2_048),
  "od_hard": Split(4, 14, 16, 2_048),
}
VALIDATION_SPLITS = ("id", "od_easy", "od_hard")
PAPER = Protocol(SPLITS, ("id", "od_easy"), fresh=False, one_width=True)

PROTOCOLS = {
  "paper": PAPER,
  # Deletang et al. 2022 (2207.02098): up to 40, tested on 41 to 500.
  "chomsky": Protocol(
    {
      "train": Split(1, 1, 40, 25_600),
      "id": Split(2, 1, 40, 480),
      "to_100": Split(3, 41, 100, 240),
      "to_200": Split(4, 101, 200, 200),
      "to_300": Split(8, 201, 300, 200),
      "to_400": Split(9, 301, 400, 200),
      "to_500": Split(10, 401, 500, 200),
    },
    ("id",),
  ),
  # Grazzi et al. 2024 (2411.12537): 3 to 40, tested on 40 to 256.
  "state_tracking": Protocol(
    {
      "train": Split(1, 3, 40, 25_600),
      "id": Split(2, 3, 39, 1_024),
      "od": Split(3, 40, 256, 1_085),
    },
    ("id",),
  ),
  # Arora et al. 2023 (2312.04927): no longer than in training.
  "recall": Protocol(
    {"train": Split(1, 1, 32, 25_600), "id": Split(2, 1, 32, 1_024)},
    ("id",),
  ),
}

_VALIDATION_SEED = 0
_ORDER_STREAM, _REPLACEMENT_STREAM, _SWEEP_STREAM = 5, 6, 7
# Spare columns, so that even the longest samples of a split can shift.
_ROOM = 4


def split_width(
  a_task: task.Task, name: str, protocol: Protocol = PAPER
) -> int:
  """Tokens per row of a split."""
  return a_task.sequence_length(_split(name, protocol).high) + _ROOM


def training_set(
  a_task: task.Task,
  seed: int,
  width: int | None = None,
  protocol: Protocol = PAPER,
  epoch: int = 0,
  shift: bool = True,
) -> task.Batch:
  """The training samples of a seed; `width` defaults to the split's.

  A wider set lets samples shift over all columns that longer ones will use,
  which learned positions need. Only fresh samples depend on the epoch. Without
  `shift`, all samples begin in the first column.
  """
  streams = (seed, protocol.splits["train"].stream)
  if protocol.fresh:
    streams = (*streams, epoch)
  return _draw(a_task, "train", streams, width, protocol, shift)


def validation_set(
  a_task: task.Task,
  name: str,
  width: int | None = None,
  protocol: Protocol = PAPER,
) -> task.Batch:
  """A set to test on, the same for every model and training seed."""
  if name not in protocol.tests:
    raise ValueError(spelling.unknown("validation split", name, protocol.tests))
  streams = (_VALIDATION_SEED, protocol.splits[name].stream)
  return _draw(a_task, name, streams, width, protocol)


def sweep_set(a_task: task.Task, digits: int, size: int = 256) -> task.Batch:
  """Samples of one length, however far past training."""
  rng = np.random.default_rng([_VALIDATION_SEED, _SWEEP_STREAM, digits])
  width = a_task.sequence_length(digits) + _ROOM
  return a_task.sample(rng, np.full(size, digits), width)


def take(samples: task.Batch, rows: np.ndarray) -> task.Batch:
  """The chosen samples."""
  return task.Batch(*(field[rows] for field in samples))


def training_rows(
  samples: task.Batch,
  seed: int,
  step: int,
  batch_size: int,
  max_digits: int,
  similar: bool = False,
) -> np.ndarray:
  """The rows [b] of the training set that make up one step's batch.

  Steps go through the set in a new random order each epoch. Rows with more
  than `max_digits` are replaced with random allowed ones. Seed and step
  determine the result, so a resumed run needs no other state. With `similar`,
  rows of similar length share a batch.
  """
  size, order = len(samples.digits), (seed, _ORDER_STREAM)
  is_allowed = samples.digits <= max_digits
  if not is_allowed.any():
    raise ValueError(f"no sample has at most {max_digits} digits")
  rng = np.random.default_rng([seed, _REPLACEMENT_STREAM, step])
  allowed = np.flatnonzero(is_allowed)
  if similar:
    rows = np.where(is_allowed, np.arange(size), rng.choice(allowed, size))
    lengths = samples.mask.sum(axis=1)[rows]
    return rows[row_order.of_similar_length(lengths, batch_size, order, step)]
  rows = row_order.shuffled(size, batch_size, order, step)
  return np.where(is_allowed[rows], rows, rng.choice(allowed, batch_size))


def training_batch(
  samples: task.Batch,
  seed: int,
  step: int,
  batch_size: int,
  max_digits: int,
  trim: int = 0,
) -> task.Batch:
  """One step's batch; see `training_rows`.

  With `trim`, rows of similar length share it, and it is cut after the last
  real token, at a multiple of `trim` columns.
  """
  rows = training_rows(
    samples, seed, step, batch_size, max_digits, similar=trim > 0
  )
  batch = take(samples, rows)
  if not trim:
    return batch
  end = np.flatnonzero(batch.mask.any(axis=0))[-1] + 1
  width = -(-end // trim) * trim
  *columns, digits = batch
  return task.Batch(*(x[:, :width] for x in columns), digits)


def max_digits(
  progress: float, start: int = 2, end: int = 10, full_at: float = 2 / 3
) -> int:
  """The most digits a training sample may have at this point in the run.

  The curriculum: grows linearly from `start` at progress 0 to `end` at progress
  `full_at`; `start == end` means no curriculum.
  """
  if not 0.0 <= progress <= 1.0:
    raise ValueError(f"progress must be in [0, 1], got {progress}")
  if not 1 <= start <= end:
    raise ValueError(f"need 1 <= start <= end, got start {start}, end {end}")
  if not 0.0 < full_at <= 1.0:
    raise ValueError(f"full_at must be in (0, 1], got {full_at}")
  return math.floor(start + (end - start) * min(progress / full_at, 1.0))


def longest_width(a_task: task.Task, protocol: Protocol = PAPER) -> int:
  """Tokens per row of the split with the longest samples."""
  return max(split_width(a_task, name, protocol) for name in protocol.splits)


def _draw(a_task, name, streams, width, protocol, shift=True):
  split = _split(name, protocol)
  rng = np.random.default_rng([*streams])
  digits = np.resize(np.arange(split.low, split.high + 1), split.size)
  if width is None:
    width = split_width(a_task, name, protocol)
  return a_task.sample(rng, digits, width, shift)


def _split(name, protocol):
  if name not in protocol.splits:
    raise ValueError(spelling.unknown("split", name, protocol.splits))
  return protocol.splits[name]
