"""The pace of a run: what counts as time, and what as waiting."""

import pytest

from nam_jax.training import progress


@pytest.fixture
def now(monkeypatch):
  """The time in a list, for the test to change."""
  time = [100.0]
  monkeypatch.setattr(progress.time, "perf_counter", lambda: time[0])
  return time


def test_pace_leaves_out_pauses_and_tells_the_share_of_waiting(now):
  def batches():
    for seconds in (50, 2):
      now[0] += seconds
      yield seconds

  clock, source = progress.Clock(0.0), batches()
  assert clock.await_next(source) == 50  # before the first step: not counted
  clock.compiled(1)
  assert clock.pace(1) == (None, None)
  assert clock.await_next(source) == 2
  now[0] += 6
  with clock.pause():
    now[0] += 1000
  assert clock.pace(5) == (4 / 8, 2 / 8)
  now[0] += 1
  assert clock.pace(6) == (1, 0)
  assert clock.seconds == 50 + 8 + 1000 + 1
