"""The task interface, and hand-computed samples of every task."""

import dataclasses
import doctest
import importlib

import numpy as np
import pytest

from algorithmic.tasks import layout, registry

TASKS = {name: registry.make_task(name) for name in registry.TASKS}
TASKS["reduce by target"] = registry.make_task("reduce", count="target")
TASKS |= {
  f"published {name}": registry.make_task(name, published=True)
  for name, task in TASKS.items()
  if hasattr(task, "published")
}

TASKS["group, every"] = registry.make_task("group", every=True)
TASKS["recall, repeated"] = registry.make_task("recall", repeated=True)
# These ask where something else is given.
IN_PLACE = {TASKS[n] for n in ("group, every", "recall", "recall, repeated")}

every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)


def draw(task, digits, seed=0, **options):
  return task.sample(np.random.default_rng(seed), np.array(digits), **options)


# (task, question, masked part of the inputs, answer)
GOLDEN = [
  ("fib", ("5", "5"), "_5_5_MM", "01E"),  # 5 + 5 = 10
  ("fib", ("21", "43"), "_21_43_MM", "64E"),  # 12 + 34 = 46
  ("fib", ("1", "999"), "_1_999_MMMM", "0001E"),  # 1 + 999 = 1000
  ("palin", ("7",), "_7_M", "7E"),
  ("palin", ("0120",), "_0120_MMMM", "0210E"),
  ("reduce", ("00",), "00_MM", ".."),
  ("reduce", ("12",), "12_MM", "12"),
  ("reduce", ("0901",), "0901_MMMM", "91.."),
  ("copy", ("0120",), "_0120_MMMM", "0120E"),
  ("repeat_copy", ("1", "12"), "_1_12_MM", "12E"),
  ("repeat_copy", ("3", "12"), "_3_12_MMMMMM", "121212E"),
  ("progression", ("9", "9"), "_9_81_MM", "72E"),  # 9, 18, 27
  ("progression", ("001", "1"), "_001_101_MMM", "201E"),  # 100, 101, 102
  ("dyck", ("()",), "_()_MM", "..E"),
  ("dyck", ("{[(<",), "_{[(<_MMMM", ">)]}E"),
  ("dyck", ("{}[<>",), "_{}[<>_MMMMM", "]....E"),
  ("parity", ("0000",), "_0000_M", "0E"),
  ("parity", ("0111",), "_0111_M", "1E"),
  ("even_pairs", ("0",), "_0_M", "1E"),  # no pair
  ("even_pairs", ("0111",), "_0111_M", "0E"),  # 01
  ("even_pairs", ("0101",), "_0101_M", "0E"),  # 01 10 01
  ("even_pairs", ("0110",), "_0110_M", "1E"),  # 01 10
  ("modular_arithmetic", ("4",), "_4_M", "4E"),
  ("modular_arithmetic", ("1-2",), "_1-2_M", "4E"),  # -1
  ("modular_arithmetic", ("2-3*4*2",), "_2-3*4*2_M", "3E"),  # -22
  ("modular_arithmetic", ("2*3-4+1",), "_2*3-4+1_M", "3E"),
  ("cycle_navigation", ("=",), "_=_M", "0E"),
  ("cycle_navigation", (">>>>>>",), "_>>>>>>_M", "1E"),
  ("cycle_navigation", ("<=<",), "_<=<_M", "3E"),
  ("reverse_string", ("0010",), "_0010_MMMM", "0100E"),
  ("stack_manipulation", ("", "^"), "__^_M", ".E"),
  ("stack_manipulation", ("", "01"), "__01_MM", "10E"),
  ("stack_manipulation", ("011", "^^0"), "_011_^^0_MMMMMM", "00....E"),
  ("bucket_sort", ("4031",), "_4031_MMMM", "0134E"),
  ("odds_first", ("0111",), "_0111_MMMM", "0111E"),
  ("odds_first", ("10100",), "_10100_MMMMM", "11000E"),
  ("duplicate_string", ("01",), "_01_MMMM", "0101E"),
  ("missing_duplicate", ("?1",), "_?1_M", "1E"),
  ("missing_duplicate", ("100?00",), "_100?00_M", "1E"),
  ("bracket_arithmetic", ("-3",), "_-3_M", "2E"),
  ("bracket_arithmetic", ("((-1)-(4))",), "_((-1)-(4))_M", "0E"),  # -5
  ("solve_equation", ("x=4",), "_x=4_M", "4E"),
  ("solve_equation", ("(1-(3-x))=0",), "_(1-(3-x))=0_M", "2E"),
  ("binary_multiplication", ("1", "1"), "_1_1_M", "1E"),
  ("binary_multiplication", ("11", "11"), "_11_11_MMMM", "1001E"),  # 9
  ("square_root", ("1",), "_1_M", "1E"),
  ("square_root", ("00111",), "_00111_MMM", "010E"),  # 7: 2
  ("group", ("b",), "_b_M", "bE"),
  ("group", ("bb",), "_bb_M", "aE"),  # a swap twice
  ("binary_addition", ("1", "1"), "_1_1_MM", "01E"),  # 1 + 1 = 2
  ("binary_addition", ("01", "11"), "_01_11_MMM", "101E"),  # 2 + 3 = 5
]


@pytest.mark.parametrize(
  ("name", "question", "given", "answer"),
  GOLDEN,
)
def test_hand_computed_samples(name, question, given, answer):
  end = "E" if answer.endswith("E") else ""
  shown, completed = TASKS[name].example(*question).splitlines()
  assert shown == given + end
  assert completed == given.rstrip("M") + answer


def test_every_task_has_a_hand_computed_sample():
  golden = {golden[0] for golden in GOLDEN}
  assert {*golden, "recall"} == set(registry.TASKS)


def test_hand_computed_samples_that_are_answered_in_place():
  shown = TASKS["recall, repeated"].example("aAbBaCbAaB", "ab")
  assert shown == "aAbBaCbAaB_ab\naAbBaCbAaB_BA"
  task = registry.make_task("group", group="Z2", every=True)
  assert task.example("babb") == "_babb\n_bbab"  # the parity of the b


@pytest.mark.parametrize("name", registry.TASKS)
def test_docstring_holds_a_worked_example_that_runs(name):
  module = importlib.import_module(registry.TASKS[name].__module__)
  assert "example(" in registry.TASKS[name].__doc__
  result = doctest.testmod(module)
  assert result.attempted >= 1
  assert result.failed == 0


@every_task
def test_batch_has_the_promised_types(task):
  batch = draw(task, [3, 1, 7])
  shape = (3, task.sequence_length(7))
  assert batch.inputs.dtype == batch.targets.dtype == np.int32
  assert batch.loss_mask.dtype == batch.mask.dtype == bool
  assert all(field.shape == shape for field in batch[:4])
  assert batch.digits.dtype == np.int32
  np.testing.assert_array_equal(batch.digits, [3, 1, 7])


@every_task
@pytest.mark.parametrize("shift", [True, False])
def test_only_masked_positions_are_unknown(task, shift):
  batch = draw(task, np.resize(range(1, 21), 500), shift=shift)
  masked = batch.inputs == layout.MASK
  if task in IN_PLACE:
    assert not masked.any()
  elif not getattr(task, "published", False):
    np.testing.assert_array_equal(batch.loss_mask, masked)
  np.testing.assert_array_equal(batch.mask, batch.inputs != layout.PAD)
  assert task in IN_PLACE or masked[batch.loss_mask].all()
  known = ~masked & ~batch.loss_mask
  np.testing.assert_array_equal(batch.inputs[known], batch.targets[known])
  assert not (batch.targets == layout.MASK).any()
  assert (batch.loss_mask.sum(axis=1) >= 1).all()
  assert batch.targets.min() >= 0
  assert batch.targets.max() < task.vocab_size == len(task.symbols)


@every_task
def test_real_tokens_are_contiguous(task):
  batch = draw(task, np.resize(range(1, 21), 500), width=300)
  starts = np.diff(batch.mask.astype(int), axis=1, prepend=0) == 1
  np.testing.assert_array_equal(starts.sum(axis=1), 1)


@every_task
def test_sequence_length_is_reached_and_never_exceeded(task):
  for digits in (1, 2):
    lengths = draw(task, np.full(512, digits), width=99).mask.sum(axis=1)
    assert lengths.max() == task.sequence_length(digits)


@every_task
def test_shift_moves_the_sample_and_nothing_else(task):
  still = draw(task, np.full(200, 4), width=60, shift=False)
  moved = draw(task, np.full(200, 4), width=60)
  assert still.mask[:, 0].all()
  offsets = moved.mask.argmax(axis=1)
  assert len(set(offsets)) > 10
  assert moved.mask[:, -1].any()
  for row, offset in enumerate(offsets):
    for name in ("inputs", "targets", "loss_mask", "mask"):
      rolled = np.roll(getattr(still, name)[row], offset)
      np.testing.assert_array_equal(getattr(moved, name)[row], rolled)


@every_task
def test_width_does_not_change_what_is_asked(task):
  narrow = draw(task, [3, 5, 2], shift=False)
  wide = draw(task, [3, 5, 2], shift=False, width=80)
  assert wide.inputs.shape == (3, 80)
  width = narrow.inputs.shape[1]
  np.testing.assert_array_equal(wide.inputs[:, :width], narrow.inputs)
  np.testing.assert_array_equal(wide.targets[:, :width], narrow.targets)
  assert (wide.inputs[:, width:] == layout.PAD).all()


@every_task
def test_same_seed_same_batch_other_seed_other_batch(task):
  digits = np.resize(range(1, 11), 100)
  first, again, other = (draw(task, digits, seed=s) for s in (1, 1, 2))
  for field, same in zip(first, again, strict=True):
    np.testing.assert_array_equal(field, same)
  assert (first.inputs != other.inputs).any()


@every_task
def test_tasks_are_frozen_and_comparable(task):
  assert dataclasses.replace(task) == task
  with pytest.raises(dataclasses.FrozenInstanceError):
    task.name = "x"


@pytest.mark.parametrize(
  ("digits", "options", "message"),
  [
    ([3, 0], {}, "at least 1, got 0"),
    ([], {}, r"b >= 1, got \(0,\)"),
    ([[3]], {}, r"got \(1, 1\)"),
    ([3, 4], {"width": 16}, "width 16 is too small: fib needs 17"),
  ],
)
def test_impossible_batches_are_refused(digits, options, message):
  with pytest.raises(ValueError, match=message):
    draw(TASKS["fib"], digits, **options)


@pytest.mark.parametrize("name", ["palin", "reverse_string", "copy"])
def test_inputs_never_contain_the_answer(name):
  batch = draw(TASKS[name], np.full(300, 12))
  assert (batch.inputs[batch.loss_mask] == layout.MASK).all()
  # Besides the question's 12 digits the input holds no other digit.
  np.testing.assert_array_equal((batch.inputs < 10).sum(axis=1), 12)
  np.testing.assert_array_equal((batch.targets < 10).sum(axis=1), 24)


@pytest.mark.parametrize("name", ["reduce", "dyck", "stack_manipulation"])
def test_number_of_masks_does_not_tell_the_answers_length(name):
  batch = draw(TASKS[name], np.full(2000, 10))
  np.testing.assert_array_equal(batch.loss_mask.sum(axis=1), 10)
  answer = (batch.loss_mask & (batch.targets != layout.PAD)).sum(axis=1)
  assert len(set(answer)) >= 6


def test_number_of_masks_does_not_tell_the_target_digits_of_reduce():
  task = TASKS["reduce by target"]
  batch = draw(task, np.resize(range(1, 17), 4000))
  digits = batch.digits[batch.loss_mask.sum(axis=1) == 20]
  assert len(set(digits)) >= 5


def test_reduce_draws_zeros_with_probability_one_half():
  batch = draw(TASKS["reduce"], np.full(4000, 10), shift=False)
  counts = np.bincount(batch.inputs[:, :10].ravel(), minlength=10) / 40_000
  np.testing.assert_allclose(counts, [0.5] + [0.5 / 9] * 9, atol=0.01)


def test_reduce_by_target_puts_zeros_anywhere():
  batch = draw(TASKS["reduce by target"], np.full(4000, 3), shift=False)
  zero_first = (batch.inputs[:, 0] == 0).mean()
  assert 0.4 < zero_first < 0.6


def test_fib_numbers_have_all_lengths_and_digits():
  batch = draw(TASKS["fib"], np.full(5000, 5), shift=False)
  first = (batch.inputs[:, 1:] == layout.DELIMITER).argmax(axis=1)
  shares = np.bincount(first, minlength=6)[1:] / 5000
  np.testing.assert_allclose(shares, 0.2, atol=0.03)
  assert set(batch.inputs[:, 1]) == set(range(10))


@pytest.mark.parametrize("name", ["parity", "even_pairs"])
def test_verdicts_are_balanced(name):
  batch = draw(TASKS[name], np.full(4000, 8))
  assert abs(batch.targets[batch.loss_mask].mean() - 0.5) < 0.05


@pytest.mark.parametrize("name", ["cycle_navigation", "modular_arithmetic"])
def test_all_five_answers_occur(name):
  batch = draw(TASKS[name], np.full(4000, 8))
  shares = np.bincount(batch.targets[batch.loss_mask], minlength=5) / 4000
  assert len(shares) == 5
  assert shares.min() > 0.1


def test_show_prints_padding_and_predictions():
  task = TASKS["palin"]
  batch = draw(task, [2], width=10, shift=False)
  batch.inputs[0, 1:3] = 4, 7
  guess = np.full(10, 9)
  shown = task.show(batch.inputs[0], guess, batch.loss_mask[0])
  assert shown == "_47_MME...\n_47_99E..."
