"""Which rows make up a batch: every row once per epoch, copies at the end."""

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
