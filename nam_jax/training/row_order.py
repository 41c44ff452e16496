"""Which rows of a data set make up which batch."""

import functools
from collections.abc import Iterator

import numpy as np

# Batches that are sorted together, by length.
_SORTED_BATCHES = 50


def shuffled(
  length: int, batch_size: int, seed: int | tuple[int, ...], step: int
) -> np.ndarray:
  """The rows [batch_size] of a step, in a new random order each epoch.

  They depend only on the arguments. A batch may span two epochs.
  """
  position = step * batch_size + np.arange(batch_size)
  epoch, place = np.divmod(position, length)
  seed = _entropy(seed)
  orders = {e: _order((*seed, int(e)), length) for e in np.unique(epoch)}
  return np.array([orders[e][p] for e, p in zip(epoch, place, strict=True)])


def of_similar_length(
  lengths: np.ndarray,
  batch_size: int,
  seed: int | tuple[int, ...],
  step: int,
) -> np.ndarray:
  """The rows [batch_size] of a step; rows of similar length share a batch.

  In each epoch's random order, every 50 batches are sorted by length, and the
  sorted batches are visited in random order. A batch that spans two epochs is
  the one that `shuffled` returns. So every row still comes once per epoch, and
  the rows depend only on the arguments.

  Args:
    lengths: of all rows.
    batch_size: rows per batch.
    seed: determines the order.
    step: which batch.
  """
  length = len(lengths)
  seed = _entropy(seed)
  epoch = step * batch_size // length
  # The batches that lie in this epoch as a whole.
  first = -(-epoch * length // batch_size)
  end = (epoch + 1) * length // batch_size
  if not first <= step < end:
    return shuffled(length, batch_size, seed, step)
  start = step - (step - first) % _SORTED_BATCHES
  count = min(_SORTED_BATCHES, end - start)
  place = start * batch_size - epoch * length
  rows = _order((*seed, epoch), length)[place : place + count * batch_size]
  rows = rows[np.argsort(lengths[rows], kind="stable")]
  order = np.random.default_rng((*seed, start, count)).permutation(count)
  return rows.reshape(count, batch_size)[order[step - start]]


def in_order(length: int, batch_size: int) -> Iterator[np.ndarray]:
  """All rows once, in batches of batch_size.

  The last batch is padded with copies of the last row.
  """
  if batch_size < 1:
    raise ValueError(f"batch_size must be at least 1, got {batch_size}")
  for start in range(0, length, batch_size):
    yield np.minimum(np.arange(start, start + batch_size), length - 1)


def _entropy(seed):
  return seed if isinstance(seed, tuple) else (seed,)


@functools.lru_cache(maxsize=4)
def _order(entropy, length):
  return np.random.default_rng(entropy).permutation(length)
