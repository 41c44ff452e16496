"""Splits, batches and the length curriculum."""

import itertools

import numpy as np
import pytest

from algorithmic import data
from algorithmic.tasks import registry

PALIN = registry.make_task("palin")
FIB = registry.make_task("fib")


@pytest.fixture(scope="module")
def samples():
  return data.training_set(PALIN, seed=0)


def digits_of(name):
  if name == "train":
    return data.training_set(PALIN, seed=0).digits
  return data.validation_set(PALIN, name).digits


def assert_equal(first, second):
  for a, b in zip(first, second, strict=True):
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
  ("name", "lengths", "size"),
  [
    ("train", range(1, 11), 25_600),
    ("id", range(5, 11), 2_048),
    ("od_easy", range(11, 14), 2_048),
    ("od_hard", range(14, 17), 2_048),
  ],
)
def test_splits_have_the_papers_sizes_spread_evenly(name, lengths, size):
  found, counts = np.unique(digits_of(name), return_counts=True)
  assert list(found) == list(lengths)
  assert counts.sum() == size
  assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
  ("name", "train", "tested"),
  [
    ("paper", range(1, 11), range(5, 17)),
    ("chomsky", range(1, 41), range(1, 501)),
    ("state_tracking", range(3, 41), range(3, 257)),
    ("recall", range(1, 33), range(1, 33)),
  ],
)
def test_protocols_test_every_length_in_one_set(name, train, tested):
  protocol, task = data.PROTOCOLS[name], registry.make_task("parity")
  if name == "recall":
    task = registry.make_task("recall")
  digits = data.training_set(task, 0, None, protocol).digits
  assert set(digits) == set(train)
  sets = [
    set(data.validation_set(task, test, None, protocol).digits)
    for test in protocol.tests
  ]
  assert sum(map(len, sets)) == len(tested)  # so that none share a length
  assert set().union(*sets) == set(tested)
  assert protocol.longest == max(tested)
  assert set(protocol.during) <= set(protocol.tests)
  streams = [split.stream for split in protocol.splits.values()]
  assert len(set(streams)) == len(streams)


def test_fresh_samples_are_others_in_every_epoch():
  task, protocol = registry.make_task("parity"), data.PROTOCOLS["chomsky"]

  def inputs(epoch, seed=0):
    return data.training_set(task, seed, None, protocol, epoch).inputs

  np.testing.assert_array_equal(inputs(3), inputs(3))
  assert (inputs(3) != inputs(4)).any()
  assert (inputs(3) != inputs(3, seed=1)).any()
  paper = [data.training_set(task, 0, epoch=epoch).inputs for epoch in (0, 1)]
  np.testing.assert_array_equal(*paper)


def test_out_of_distribution_lengths_are_new():
  lengths = {name: set(digits_of(name)) for name in data.SPLITS}
  assert lengths["id"] < lengths["train"]
  assert not lengths["od_easy"] & lengths["train"]
  assert not lengths["od_hard"] & (lengths["train"] | lengths["od_easy"])


@pytest.mark.parametrize("name", data.VALIDATION_SPLITS)
def test_samples_are_as_long_as_their_digits_say(name):
  split = data.validation_set(PALIN, name)
  given = ((split.inputs < 10) & split.mask).sum(axis=1)
  np.testing.assert_array_equal(given, split.digits)
  np.testing.assert_array_equal(split.loss_mask.sum(axis=1), split.digits)


@pytest.mark.parametrize("name", registry.TASKS)
def test_each_split_has_one_width_with_room_to_shift(name):
  task = registry.make_task(name)
  for split_name in data.VALIDATION_SPLITS:
    split = data.validation_set(task, split_name)
    assert split.inputs.shape[1] == data.split_width(task, split_name)
    longest = split.digits == split.digits.max()
    offsets = split.mask[longest].argmax(axis=1)
    assert {0, 1, 2, 3, 4} <= set(offsets)


def test_splits_come_from_streams_of_their_own():
  # With equal streams, the shorter set would start like the longer one.
  first = {}
  for name, split in data.SPLITS.items():
    rng = np.random.default_rng([0, split.stream])
    first[name] = tuple(rng.integers(0, 1 << 30, 4))
  assert len(set(first.values())) == 4
  train = data.training_set(PALIN, 0).inputs
  assert (train[5:10] != data.training_set(PALIN, 1).inputs[5:10]).any()


def test_sets_are_reproducible():
  for name in data.VALIDATION_SPLITS:
    first, again = (data.validation_set(FIB, name) for _ in range(2))
    assert_equal(first, again)
  assert_equal(data.training_set(FIB, 3), data.training_set(FIB, 3))


def test_id_samples_of_many_digits_were_not_trained_on(samples):
  split = data.validation_set(PALIN, "id")

  def questions(batch):
    rows = np.flatnonzero(batch.digits == 10)
    given = (batch.inputs < 10) & batch.mask
    return {tuple(batch.inputs[row, given[row]]) for row in rows}

  assert len(questions(samples)) == 2560
  assert not questions(samples) & questions(split)


def test_a_wider_training_set_asks_the_same_questions(samples):
  wide = data.training_set(PALIN, 0, width=50)
  assert wide.inputs.shape == (25_600, 50)
  np.testing.assert_array_equal(
    wide.inputs[wide.mask], samples.inputs[samples.mask]
  )


@pytest.mark.parametrize("digits", [20, 40, 80])
def test_sweep_reaches_any_length(digits):
  sweep = data.sweep_set(FIB, digits, size=32)
  assert set(sweep.digits) == {digits}
  assert len(sweep.inputs) == 32
  assert_equal(sweep, data.sweep_set(FIB, digits, size=32))


@pytest.mark.parametrize("name", ["train", "test"])
def test_unknown_validation_split_is_refused(name):
  with pytest.raises(ValueError, match=f"{name}.*id, od_easy, od_hard"):
    data.validation_set(PALIN, name)


def test_unknown_split_has_no_width():
  with pytest.raises(ValueError, match=r"'x'.*train, id"):
    data.split_width(PALIN, "x")


def rows(samples, step, batch_size=64, max_digits=10, seed=0):
  return data.training_rows(samples, seed, step, batch_size, max_digits)


def test_an_epoch_visits_every_row_once_in_a_new_order(samples):
  first = np.concatenate([rows(samples, step) for step in range(400)])
  second = np.concatenate([rows(samples, step) for step in range(400, 800)])
  np.testing.assert_array_equal(np.sort(first), np.arange(25_600))
  np.testing.assert_array_equal(np.sort(second), np.arange(25_600))
  assert (first == second).mean() < 0.01


def test_batches_that_straddle_epochs_lose_no_row(samples):
  # 256 steps of 300 rows are exactly three epochs.
  seen = np.concatenate([rows(samples, s, batch_size=300) for s in range(256)])
  np.testing.assert_array_equal(np.bincount(seen), 3)


def test_a_batch_larger_than_the_set_repeats_it(samples):
  small = data.take(samples, np.arange(10))
  np.testing.assert_array_equal(
    np.bincount(rows(small, step=0, batch_size=30)), 3
  )


def test_step_and_seed_determine_the_batch(samples):
  def batch(seed, step):
    return data.training_batch(samples, seed, step, 64, max_digits=4)

  later = batch(0, 1000)
  batch(0, 5)
  assert_equal(batch(0, 1000), later)
  assert (batch(0, 1001).inputs != later.inputs).any()
  assert (batch(1, 1000).inputs != later.inputs).any()


@pytest.mark.parametrize("max_digits", [1, 2, 7])
def test_curriculum_replaces_long_rows_only(samples, max_digits):
  free = rows(samples, step=3, batch_size=256)
  held = rows(samples, step=3, batch_size=256, max_digits=max_digits)
  short = samples.digits[free] <= max_digits
  np.testing.assert_array_equal(held[short], free[short])
  assert not short.all()
  assert samples.digits[held].max() <= max_digits
  assert len(set(samples.digits[held])) == max_digits


def test_curriculum_draws_new_rows_each_step(samples):
  first, second = (rows(samples, step, max_digits=1) for step in (0, 1))
  assert len(set(first) | set(second)) > 100


@pytest.fixture(scope="module")
def unshifted():
  return data.training_set(PALIN, 0, shift=False)


def cut(unshifted, step, max_digits=10):
  return data.training_batch(unshifted, 0, step, 64, max_digits, trim=8)


def test_cut_batches_are_of_similar_length_and_lose_no_token(unshifted):
  batches = [cut(unshifted, step) for step in range(400)]
  widths = [batch.inputs.shape[1] for batch in batches]
  assert set(widths) == {8, 16, 24}  # 10 digits are 23 tokens
  assert np.mean(widths) < 18
  spread = [batch.digits.max() - batch.digits.min() for batch in batches]
  assert np.mean(spread) < 1
  assert abs(np.corrcoef(widths, np.arange(400))[0, 1]) < 0.2
  for batch in batches:
    assert batch.mask[:, 0].all()
    assert batch.mask.shape == batch.targets.shape == batch.inputs.shape
    wanted = 2 * batch.digits + 3
    np.testing.assert_array_equal(batch.mask.sum(axis=1), wanted)


def test_cut_batches_visit_every_row_once_an_epoch(unshifted):
  for first in (0, 400):
    seen = np.concatenate(
      [
        data.training_rows(unshifted, 0, step, 64, 10, similar=True)
        for step in range(first, first + 400)
      ]
    )
    np.testing.assert_array_equal(np.sort(seen), np.arange(25_600))


def test_cut_batches_follow_the_curriculum(unshifted):
  batches = [cut(unshifted, step, max_digits=3) for step in range(50)]
  assert {x for batch in batches for x in batch.digits} == {1, 2, 3}
  assert {batch.inputs.shape[1] for batch in batches} == {8, 16}
  assert_equal(batches[7], cut(unshifted, 7, max_digits=3))


def test_curriculum_that_allows_nothing_is_refused(samples):
  long = data.take(samples, np.flatnonzero(samples.digits > 4))
  with pytest.raises(ValueError, match="at most 4 digits"):
    rows(long, step=0, max_digits=4)


def test_batch_keeps_rows_together(samples):
  chosen = np.array([7, 3])
  batch = data.take(samples, chosen)
  for field, whole in zip(batch, samples, strict=True):
    np.testing.assert_array_equal(field, whole[chosen])


@pytest.mark.parametrize(
  ("progress", "digits"),
  [(0.0, 2), (0.08, 2), (0.09, 3), (1 / 3, 6), (0.66, 9), (2 / 3, 10), (1, 10)],
)
def test_curriculum_grows_linearly_to_ten_at_two_thirds(progress, digits):
  assert data.max_digits(progress) == digits


def test_curriculum_never_shrinks_and_never_skips():
  values = [data.max_digits(i / 500, 1, 10, 0.5) for i in range(501)]
  steps = [b - a for a, b in itertools.pairwise(values)]
  assert values[0] == 1
  assert values[250] == values[-1] == 10
  assert set(steps) == {0, 1}


def test_equal_ends_mean_no_curriculum():
  assert {data.max_digits(p / 10, 10, 10) for p in range(11)} == {10}


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ((-0.1,), "progress"),
    ((1.1,), "progress"),
    ((float("nan"),), "progress"),
    ((0.5, 0), "start 0"),
    ((0.5, 11), "start 11, end 10"),
    ((0.5, 2, 10, 0.0), "full_at"),
  ],
)
def test_impossible_curriculum_is_refused(arguments, message):
  with pytest.raises(ValueError, match=message):
    data.max_digits(*arguments)
