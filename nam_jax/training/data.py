"""Batches that depend only on the seed and the step number.

A source of training data is one of

  rows    an object with `len(source)` and `source[i]` -> dict of numpy arrays,
          visited in a new random order each epoch;
  batch_fn  a function of the step number, `batch_fn(step)` -> dict of numpy
          arrays with `batch_size` rows, for data that is generated. It is
          called from several threads and must be a pure function.

Batch t of a run therefore does not need batches 0 ... t−1, and a run resumes
by starting at its step. Every process reads its own rows of the same global
batch.
"""

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import grain
import jax
import numpy as np

from nam_jax.training import devices, row_order

HostBatch = dict[str, np.ndarray]


@runtime_checkable
class Rows(Protocol):
  """A random-access source of dicts of numpy arrays."""

  def __len__(self) -> int: ...

  def __getitem__(self, index: int) -> dict[str, Any]: ...


Source = Rows | Callable[[int], HostBatch]


def train_batches(
  source: Source, batch_size: int, seed: int, start_step: int
) -> Iterator[HostBatch]:
  """This process's rows of the batches start_step, start_step + 1, ..."""
  devices.check_batch_size(batch_size)
  mine = _local_rows(batch_size)
  if callable(source):
    read = functools.partial(_generated_rows, source, batch_size, mine)
  else:
    if len(source) == 0:
      raise ValueError("the source has no rows")
    read = functools.partial(_drawn_rows, source, batch_size, seed, mine)
  steps = grain.MapDataset.range(start_step, sys.maxsize)
  options = grain.ReadOptions(num_threads=2, prefetch_buffer_size=4)
  return iter(steps.map(read).to_iter_dataset(options))


def eval_batches(source: Rows, batch_size: int) -> Iterator[HostBatch]:
  """All rows once, in order; this process's share of each batch.

  The last batch is padded with copies of the last row. The extra field
  `row_mask` is False there, and metrics must not count those rows.
  """
  devices.check_batch_size(batch_size)
  mine = _local_rows(batch_size)
  for i, rows in enumerate(row_order.in_order(len(source), batch_size)):
    is_row = i * batch_size + np.arange(batch_size) < len(source)
    yield stack(source, rows[mine]) | {"row_mask": is_row[mine]}


def stack(source: Rows, indices: np.ndarray) -> HostBatch:
  """The rows with these indices, as one batch."""
  rows = [source[int(i)] for i in indices]
  return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def _local_rows(batch_size):
  share = batch_size // jax.process_count()
  first = jax.process_index() * share
  return slice(first, first + share)


def _generated_rows(batch_fn, batch_size, mine, step):
  batch = batch_fn(int(step))
  for name, rows in batch.items():
    if len(rows) != batch_size:
      raise ValueError(
        f"the batch function returned {len(rows)} rows of {name!r} for"
        f" batch_size={batch_size}"
      )
  return {name: np.asarray(rows)[mine] for name, rows in batch.items()}


def _drawn_rows(source, batch_size, seed, mine, step):
  rows = row_order.shuffled(len(source), batch_size, seed, int(step))
  return stack(source, rows[mine])
