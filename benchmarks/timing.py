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
  """Name -> seconds of its fastest round.

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
  best = dict.fromkeys(candidates, float("inf"))
  used = dict.fromkeys(candidates, 0.0)
  for _ in range(rounds):
    for name, run in candidates.items():
      if used[name] >= seconds:
        continue
      time.sleep(pause)
      start = time.perf_counter()
      jax.block_until_ready(run())
      taken = time.perf_counter() - start
      best[name], used[name] = min(best[name], taken), used[name] + taken
  return best
