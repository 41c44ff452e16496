"""Properties of digit-wise addition and of placing rows."""

import hypothesis
import numpy as np
from hypothesis import strategies

from algorithmic.tasks import layout, numbers

naturals = strategies.integers(0, 10**60)
settings = hypothesis.settings(deadline=None, database=None, max_examples=60)


def batch_of(values):
  """Little-endian digits [b w] of Python integers."""
  texts = [str(value)[::-1] for value in values]
  width = max(map(len, texts))
  padded = [
    [int(c) for c in t] + [layout.PAD] * (width - len(t)) for t in texts
  ]
  return np.array(padded)


@settings
@hypothesis.given(
  strategies.lists(
    strategies.tuples(naturals, naturals), min_size=1, max_size=4
  )
)
def test_sums_equal_those_of_integers(pairs):
  a, b = (batch_of(column) for column in zip(*pairs, strict=True))
  total = numbers.add(a, b, 10)
  for row, pair in zip(total, pairs, strict=True):
    text = "".join(str(digit) for digit in row if digit != layout.PAD)
    assert text[::-1] == str(sum(pair))


def test_carry_runs_through_sixty_nines():
  total = numbers.add(np.full((1, 60), 9), np.array([[1]]), 10)
  np.testing.assert_array_equal(total, [[0] * 60 + [1]])


def test_random_numbers_have_exactly_their_length():
  rng = np.random.default_rng(0)
  lengths = np.resize(range(1, 30), 2000)
  drawn = numbers.random_numbers(rng, lengths, 10)
  np.testing.assert_array_equal((drawn != layout.PAD).sum(axis=1), lengths)
  assert (drawn[np.arange(2000), lengths - 1] >= 1).all()


@settings
@hypothesis.given(strategies.data())
def test_place_keeps_the_real_tokens_in_order(data):
  flags = strategies.lists(strategies.booleans(), min_size=6, max_size=6)
  real = np.array(data.draw(strategies.lists(flags, min_size=1, max_size=5)))
  rows = np.arange(real.size).reshape(real.shape) + 20
  offset = np.array([data.draw(strategies.integers(0, 4)) for _ in real])
  placed = layout.place(rows, real, offset, 10)
  for i in range(len(rows)):
    kept = list(rows[i][real[i]])
    rest = [layout.PAD] * (10 - offset[i] - len(kept))
    assert list(placed[i]) == [layout.PAD] * offset[i] + kept + rest
