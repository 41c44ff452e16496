"""Metrics and pace of the steps since the last log line."""

import contextlib
import math
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TypeVar

import jax
from jaxtyping import Array

from nam_jax.training.errors import TrainingDiverged

Pairs = dict[str, list[float]]  # name -> [sum, weight]
T = TypeVar("T")


class Window:
  """Metrics of the steps since the last log line.

  They stay on the device until they are needed, while the host runs at most one
  step ahead of it.
  """

  def __init__(self, fetched: Sequence[Sequence]):
    self._fetched = list(fetched)  # (step, Pairs) each
    self._waiting = []

  def add(self, step: int, metrics: Mapping[str, tuple[Array, Array]]) -> None:
    """Notes the (sum, weight) pairs of a step that may still be running."""
    self._waiting.append((step, metrics))
    if len(self._waiting) > 1:
      jax.block_until_ready(self._waiting[-2])

  def fetch(self) -> list:
    """(step, Pairs) of all steps; raises at the first that is not finite."""
    for step, metrics in jax.device_get(self._waiting):
      pairs = {name: [float(x) for x in pair] for name, pair in metrics.items()}
      for name in ("loss", "grad_norm"):
        if not math.isfinite(pairs[name][0]):
          raise TrainingDiverged(f"{name} is {pairs[name][0]} at step {step}")
      self._fetched.append((step, pairs))
    self._waiting = []
    return self._fetched

  def mean(self) -> dict[str, float]:
    """The mean of each metric, the loss first; empties the window."""
    steps = [pairs for _, pairs in self.fetch()]
    self._fetched = []
    names = ["loss", *(name for name in steps[0] if name != "loss")]
    return {name: _mean([pairs[name] for pairs in steps]) for name in names}


class Clock:
  """Duration of the run, and the pace of its steps."""

  def __init__(self, seconds: float):
    self._start = time.perf_counter() - seconds
    self._first = self._last = (0, self._start)  # (step, time)
    self._waited = 0.0  # seconds since self._last

  @property
  def seconds(self) -> float:
    """Duration of the run so far, over all restarts."""
    return time.perf_counter() - self._start

  def compiled(self, step: int) -> None:
    """Starts measuring the pace, after the first step."""
    self._first = self._last = (step, time.perf_counter())
    self._waited = 0.0

  @contextlib.contextmanager
  def pause(self) -> Generator[None]:
    """A context whose duration is excluded from the pace."""
    before = time.perf_counter()
    yield
    step, last = self._last
    self._last = (step, last + time.perf_counter() - before)

  def await_next(self, batches: Iterator[T]) -> T:
    """The next batch; the time until it arrives counts as waiting."""
    before = time.perf_counter()
    batch = next(batches)
    self._waited += time.perf_counter() - before
    return batch

  def pace(self, step: int) -> tuple[float, float] | tuple[None, None]:
    """Steps per second since the last call, and the share spent waiting.

    None right after compilation.
    """
    now = time.perf_counter()
    steps, seconds = step - self._last[0], now - self._last[1]
    waited, self._waited, self._last = self._waited, 0.0, (step, now)
    return (steps / seconds, waited / seconds) if steps else (None, None)

  def seconds_left(self, step: int, num_steps: int) -> float:
    """Time until the end, evaluations and checkpoints included."""
    first, start = self._first
    elapsed = time.perf_counter() - start
    return elapsed / max(1, step - first) * (num_steps - step)


def _mean(pairs):
  total, weight = (sum(column) for column in zip(*pairs, strict=True))
  return total / weight if weight else math.nan
