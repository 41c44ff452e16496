"""Times of several functions, side by side in one process.

Every candidate runs once per round, in turn, and its fastest round counts, so a
busy machine slows all of them equally. Compare ratios, not times.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax


def race(
  candidates: Mapping[str, Callable[[], Any]],
  rounds: int,
  *,
  seconds: float = float("inf"),
  pause: float = 0.0,
) -> dict[str, float]:
  """Name -> seconds of its fastest round; arguments are those of `laps`."""
  times = laps(candidates, rounds, seconds=seconds, pause=pause)
  return {name: min(taken) for name, taken in times.items()}


def laps(
  candidates: Mapping[str, Callable[[], Any]],
  rounds: int,
  *,
  seconds: float = float("inf"),
  pause: float = 0.0,
) -> dict[str, list[float]]:
  """Name -> seconds of each of its rounds.

  Args:
    candidates: name -> function to run; all run once first, untimed.
    rounds: how often each candidate runs.
    seconds: a candidate leaves the race once it has used this many; at least
      one round is timed.
    pause: seconds to wait before a turn, so that the threads of another
      library's last turn come to rest.
  """
  for run in candidates.values():
    jax.block_until_ready(run())
  times = {name: [] for name in candidates}
  for _ in range(rounds):
    for name, run in candidates.items():
      if sum(times[name]) >= seconds:
        continue
      time.sleep(pause)
      start = time.perf_counter()
      jax.block_until_ready(run())
      times[name].append(time.perf_counter() - start)
  return times
