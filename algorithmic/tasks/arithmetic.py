"""Natural numbers as little-endian digit strings of any length.

Numbers are drawn and added digit by digit, so that no integer overflows.
"""

import numpy as np

from algorithmic.tasks import layout


def random_numbers(
  rng: np.random.Generator, lengths: np.ndarray, base: int
) -> np.ndarray:
  """Numbers [b w] of exactly `lengths[b]` digits: the leading one is not 0."""
  numbers = layout.random_strings(rng, lengths, range(base))
  leading = rng.integers(1, base, lengths.size)
  numbers[np.arange(lengths.size), lengths - 1] = leading
  return numbers


def add(a: np.ndarray, b: np.ndarray, base: int) -> np.ndarray:
  """The sums [b w+1] of two batches of numbers, without leading zeros."""
  width = max(a.shape[1], b.shape[1]) + 1
  total = np.zeros((len(a), width), np.int32)
  for number in (a, b):
    total[:, : number.shape[1]] += np.where(number == layout.PAD, 0, number)
  for column in range(width - 1):
    total[:, column + 1] += total[:, column] // base
    total[:, column] %= base
  # A digit counts if it or a more significant one is not 0.
  counts = np.maximum.accumulate(total[:, ::-1] != 0, axis=1)[:, ::-1]
  counts[:, 0] = True
  return np.where(counts, total, layout.PAD)
