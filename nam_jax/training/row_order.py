"""Which rows of a data set make up which batch."""

import functools
from collections.abc import Iterator

import numpy as np


def shuffled(
  length: int, batch_size: int, seed: int | tuple[int, ...], step: int
) -> np.ndarray:
  """The rows [batch_size] of a step, in a new random order each epoch.

  They depend only on the arguments. A batch may span two epochs.
  """
  position = step * batch_size + np.arange(batch_size)
  epoch, place = np.divmod(position, length)
  seed = seed if isinstance(seed, tuple) else (seed,)
  orders = {e: _order((*seed, int(e)), length) for e in np.unique(epoch)}
  return np.array([orders[e][p] for e, p in zip(epoch, place, strict=True)])


def in_order(length: int, batch_size: int) -> Iterator[np.ndarray]:
  """All rows once, in batches of batch_size.

  The last batch is padded with copies of the last row.
  """
  if batch_size < 1:
    raise ValueError(f"batch_size must be at least 1, got {batch_size}")
  for start in range(0, length, batch_size):
    yield np.minimum(np.arange(start, start + batch_size), length - 1)


@functools.lru_cache(maxsize=4)
def _order(entropy, length):
  return np.random.default_rng(entropy).permutation(length)
