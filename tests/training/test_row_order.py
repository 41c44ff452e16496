"""Which rows make up a batch: every row once per epoch, copies at the end."""

import functools

import numpy as np
import pytest

from nam_jax.training import row_order


def test_shuffled_batches_visit_every_row_once_an_epoch():
  rows = [row_order.shuffled(7, 3, seed=1, step=step) for step in range(14)]
  epochs = np.concatenate(rows).reshape(6, 7)
  assert (np.sort(epochs, axis=1) == np.arange(7)).all()
  assert len({tuple(epoch) for epoch in epochs}) > 1


def test_seed_and_step_decide_the_rows():
  first, other = (row_order.shuffled(50, 8, seed, 4) for seed in (1, (1, 2)))
  np.testing.assert_array_equal(first, row_order.shuffled(50, 8, 1, 4))
  assert (first != other).any()


def test_rows_in_order_are_filled_up_with_the_last_one():
  batches = [rows.tolist() for rows in row_order.in_order(5, 3)]
  assert batches == [[0, 1, 2], [3, 4, 4]]
  assert list(row_order.in_order(0, 3)) == []
  with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
    list(row_order.in_order(5, 0))


@pytest.mark.parametrize("length", [5, 64, 450])
def test_rows_of_similar_length_come_once_an_epoch(length):
  size, seed = 8, 3
  lengths = np.random.default_rng(0).integers(1, 400, length)
  steps = range(3 * length)
  take = functools.partial(row_order.of_similar_length, lengths, size, seed)
  batches = [take(step) for step in steps]
  epochs = np.concatenate(batches).reshape(3 * size, length)
  assert (np.sort(epochs, axis=1) == np.arange(length)).all()
  np.testing.assert_array_equal(take(steps[-1]), batches[-1])
  same, other = (
    [row_order.of_similar_length(lengths, size, s, t).tolist() for t in steps]
    for s in (seed, 4)
  )
  assert same == [batch.tolist() for batch in batches] != other


def test_batches_are_of_similar_length_but_not_in_order_of_length():
  lengths = np.random.default_rng(0).integers(1, 1000, 4000)
  batches = [
    lengths[row_order.of_similar_length(lengths, 8, 0, step)]
    for step in range(50)
  ]
  spread = [batch.max() - batch.min() for batch in batches]
  assert np.mean(spread) < 30
  longest = [batch.max() for batch in batches]
  assert abs(np.corrcoef(longest, np.arange(50))[0, 1]) < 0.4
