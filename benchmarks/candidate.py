"""The candidates of a race and their results."""

import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax

from benchmarks import flops, timing

# Share of the machine's memory; a candidate that needs more does not run.
_MEMORY_SHARE = 0.6
# Until the previous candidate's threads have stopped waiting for work.
_PAUSE = 0.01


class Settings(NamedTuple):
  """How large and how long; the defaults take a few minutes on two cores."""

  sizes: tuple[int, ...] = (256, 512, 1024, 2048, 4096, 8192, 16384)
  heads: tuple[int, int, int] = (2, 4, 64)  # batch, heads, width of a head
  machine: tuple[int, int, int] = (128, 39, 64)  # batch, tokens, width
  lra: tuple[tuple[str, int], ...] = (("image", 1024),)  # config, tokens
  attentions: tuple[str, ...] = (
    "softmax",
    "linear",
    "nam",
    "nam_causal",
    "nam_erase",
    "nam_decay",
    "nam_full",
  )
  episodes: int = 1000
  tokens: int = 500  # of a stream
  rounds: int = 30
  seconds: float = 1.5  # of a candidate in a race
  limit: float = 20.0  # seconds of one run; what would take longer is skipped


QUICK = Settings(
  sizes=(64, 128),
  heads=(1, 2, 16),
  machine=(4, 7, 16),
  lra=(("pathfinder", 16),),
  attentions=("softmax", "nam"),
  episodes=20,
  tokens=20,
  rounds=2,
)


class Candidate(NamedTuple):
  """A function to time, and what its compiler says about it."""

  run: Callable[[], Any]
  compile_seconds: float | None = None
  temporary_mib: float | None = None
  flops: int | None = None


class Result(NamedTuple):
  """One line of the report; None where nothing was measured."""

  group: str
  task: str  # what runs, for instance "forward"
  size: int  # tokens, or episodes
  name: str
  seconds: float | None = None  # of the fastest round
  compile_seconds: float | None = None
  temporary_mib: float | None = None
  flops: int | None = None
  skipped: str | None = None  # why
  median_seconds: float | None = None


def forward(function: Callable, *args) -> Candidate:
  """The compiled function."""
  return _compile(function, *args)


def with_gradient(function: Callable, seed, *args) -> Candidate:
  """The compiled function and its gradient for all arguments.

  Args:
    function: takes args.
    seed: the gradient of its result, of the same shape.
    args: the function's arguments.
  """

  def both(seed, *args):
    result, pull = jax.vjp(function, *args)
    return result, pull(seed)

  return _compile(both, seed, *args)


def _compile(function, *args):
  start = time.perf_counter()
  compiled = jax.jit(function).lower(*args).compile()
  taken = time.perf_counter() - start
  return Candidate(
    lambda: compiled(*args),
    taken,
    compiled.memory_analysis().temp_size_in_bytes / 2**20,
    flops.count(function, *args),
  )


def measure(
  group: str,
  task: str,
  size: int,
  candidates: Mapping[str, Candidate],
  settings: Settings,
) -> list[Result]:
  """Races the candidates that fit into memory."""
  results, runs = {}, {}
  total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
  for name, candidate in candidates.items():
    results[name] = Result(group, task, size, name, None, *candidate[1:])
    needed = candidate.temporary_mib or 0
    if needed > _MEMORY_SHARE * total:
      why = f"needs {needed:,.0f} MiB of the machine's {total:,.0f}"
      results[name] = results[name]._replace(skipped=why)
    else:
      runs[name] = candidate.run
  laps = timing.laps(
    runs, settings.rounds, seconds=settings.seconds, pause=_PAUSE
  )
  for name, times in laps.items():
    results[name] = results[name]._replace(
      seconds=min(times), median_seconds=statistics.median(times)
    )
  return list(results.values())
