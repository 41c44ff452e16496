"""Batches without most of their padding.

Rows of similar length share a batch, and a batch is cut after its longest row,
rounded up to a multiple of `trim`: the network is compiled for every length.
"""

from collections.abc import Callable, Iterator

import numpy as np

from lra_tasks import task
from lra_tasks.rows import SomeRows
from nam_jax import training
from nam_jax.training import data, row_order


def batch_fn(
  rows: task.Rows, max_length: int, batch_size: int, seed: int, trim: int
) -> Callable[[int], data.HostBatch]:
  """A source of training data: the batch of each step.

  Every process reads the whole batch, whose longest row decides.

  Args:
    rows: the training rows, of which each comes once per epoch.
    max_length: of a row's inputs.
    batch_size: rows per batch.
    seed: determines the order of rows; see `row_order.of_similar_length`.
    trim: batches are cut to a multiple of this.
  """
  longest = _longest(rows, max_length)

  def read(step: int) -> data.HostBatch:
    some = row_order.of_similar_length(longest, batch_size, seed, step)
    return _cut(data.stack(rows, some), longest[some].max(), trim)

  return read


def eval_batches(
  rows: task.Rows, max_length: int, batch_size: int, trim: int
) -> Iterator[data.HostBatch]:
  """All rows once, from short to long; see `training.eval_batches`."""
  longest = _longest(rows, max_length)
  order = np.argsort(longest, kind="stable")
  batches = training.eval_batches(SomeRows(rows, order), batch_size)
  places = row_order.in_order(len(rows), batch_size)
  for batch, place in zip(batches, places, strict=True):
    yield _cut(batch, longest[order[place[-1]]], trim)


def _longest(rows, max_length):
  """Tokens per row, [rows]; of two documents, those of the longer one."""
  lengths = np.clip(rows.lengths, 1, max_length)
  return lengths.reshape(len(rows), -1).max(axis=1)


def _cut(batch, longest, trim):
  length = -(-longest // trim) * trim
  shorter = {name: batch[name][..., :length] for name in ("inputs", "mask")}
  return {**batch, **shorter}
