"""The length curriculum."""

import itertools

import pytest

from algorithmic import lengths


@pytest.mark.parametrize(
  ("progress", "digits"),
  [(0.0, 2), (0.08, 2), (0.09, 3), (1 / 3, 6), (0.66, 9), (2 / 3, 10), (1, 10)],
)
def test_grows_linearly_to_ten_at_two_thirds(progress, digits):
  assert lengths.max_digits(progress) == digits


def test_never_shrinks_and_never_skips():
  values = [lengths.max_digits(i / 500, 1, 10, 0.5) for i in range(501)]
  steps = [b - a for a, b in itertools.pairwise(values)]
  assert values[0] == 1
  assert values[250] == values[-1] == 10
  assert set(steps) == {0, 1}


def test_equal_ends_mean_no_curriculum():
  assert {lengths.max_digits(p / 10, 10, 10) for p in range(11)} == {10}


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
def test_impossible_values_are_refused(arguments, message):
  with pytest.raises(ValueError, match=message):
    lengths.max_digits(*arguments)
