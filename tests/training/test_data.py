"""Batches are a function of seed and step; every epoch visits every row."""

import itertools

import jax
import numpy as np
import pytest

from nam_jax import training
from nam_jax.training import devices


class Numbers:
  """Row i is the number i."""

  def __init__(self, count):
    self._count = count

  def __len__(self):
    return self._count

  def __getitem__(self, i):
    return {"x": np.float32(i), "pair": np.asarray([i, -i])}


def _take(count, source, batch_size=4, seed=0, start_step=0):
  batches = training.train_batches(source, batch_size, seed, start_step)
  return list(itertools.islice(batches, count))


def test_each_epoch_is_another_permutation_of_all_rows():
  batches = _take(10, Numbers(10))  # 40 rows: four epochs across batch borders
  epochs = np.concatenate([b["x"] for b in batches]).reshape(4, 10)
  assert (np.sort(epochs, axis=1) == np.arange(10)).all()
  assert len({tuple(epoch) for epoch in epochs}) == 4
  assert batches[0]["pair"].shape == (4, 2)


def test_starting_late_equals_skipping():
  whole = _take(9, Numbers(10))
  late = _take(4, Numbers(10), start_step=5)
  for a, b in zip(whole[5:], late, strict=True):
    np.testing.assert_array_equal(a["x"], b["x"])


def test_seed_decides_the_order():
  first, second = (_take(1, Numbers(100), seed=s)[0]["x"] for s in (0, 1))
  assert (first != second).any()


def test_batch_function_receives_the_step():
  batches = _take(3, lambda step: {"x": np.full(4, step)}, start_step=7)
  assert [b["x"].tolist() for b in batches] == [[7] * 4, [8] * 4, [9] * 4]


def test_batch_function_with_wrong_size_is_an_error():
  with pytest.raises(
    ValueError, match="returned 3 rows of 'x' for batch_size=4"
  ):
    _take(1, lambda step: {"x": np.zeros(3)})


def test_source_without_rows_is_an_error():
  with pytest.raises(ValueError, match="no rows"):
    _take(1, Numbers(0))


def test_eval_batches_mark_the_filling_of_the_last_one():
  batches = list(training.eval_batches(Numbers(6), 4))
  assert [b["x"].tolist() for b in batches] == [[0, 1, 2, 3], [4, 5, 5, 5]]
  masks = [b["row_mask"].tolist() for b in batches]
  assert masks == [[True] * 4, [True, True, False, False]]


@pytest.mark.parametrize("index", [0, 1])
def test_processes_read_contiguous_halves_of_the_same_batches(
  index, monkeypatch
):
  whole = _take(6, Numbers(10))
  generated = _take(2, lambda step: {"x": np.arange(4) + step})
  monkeypatch.setattr(jax, "process_count", lambda: 2)
  monkeypatch.setattr(jax, "process_index", lambda: index)
  mine = slice(2 * index, 2 * index + 2)
  for a, b in zip(whole, _take(6, Numbers(10)), strict=True):
    np.testing.assert_array_equal(a["x"][mine], b["x"])
  part = _take(2, lambda step: {"x": np.arange(4) + step})
  for a, b in zip(generated, part, strict=True):
    np.testing.assert_array_equal(a["x"][mine], b["x"])


def test_batch_size_must_fit_devices_and_parts(monkeypatch):
  monkeypatch.setattr(jax, "device_count", lambda: 4)
  devices.check_batch_size(24, 3)
  with pytest.raises(
    training.UserError,
    match="batch_size=24 must be a multiple of 4 devices times"
    " accumulate_steps=4",
  ):
    devices.check_batch_size(24, 4)
