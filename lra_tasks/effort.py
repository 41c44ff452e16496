"""Runs of equal effort: as many updates as asked for, or as fit into minutes.

The number of updates is chosen before a run starts and is part of its config,
so that the run can be repeated and its learning rate can follow a schedule.
"""

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import jax

from lra_tasks.config import LRAConfig
from nam_jax import training

# How often a run of chosen effort logs, evaluates and saves.
TIMES = 10
# Settings that count updates and keep their share of the run; 0 is off.
_SHARES = ("warmup_steps", "steps_per_decay", "steps_per_cycle")
_EVERY = ("log_every", "eval_every", "checkpoint_every")
# Batches that are timed even if they take longer than asked for.
_FEWEST = 3

T = TypeVar("T")


class Pace(NamedTuple):
  """Mean durations, without compilation."""

  step_seconds: float  # of an update and its batch
  evaluation_seconds: float  # of a whole evaluation in training

  def steps_within(self, minutes: float) -> int:
    """Updates that, with all evaluations, take this long."""
    left = 60 * minutes - TIMES * self.evaluation_seconds
    steps = int(left / self.step_seconds)
    if steps < TIMES:
      raise training.UserError(
        f"{minutes:g} minutes are too short: an update takes"
        f" {self.step_seconds:.2g} s, and each of {TIMES} evaluations"
        f" {self.evaluation_seconds:.2g} s; give more minutes or a smaller"
        " --config.num_eval_batches"
      )
    return steps


def flags(config: LRAConfig, num_steps: int) -> tuple[str, ...]:
  """Arguments that give a run of this config another number of updates."""
  scale = num_steps / config.num_steps
  fields = {"num_steps": num_steps}
  fields |= {
    name: max(1, round(scale * getattr(config, name)))
    for name in _SHARES
    if getattr(config, name)
  }
  fields |= dict.fromkeys(_EVERY, -(-num_steps // TIMES))
  return tuple(f"--config.{name}={value}" for name, value in fields.items())


def mean_seconds(
  call: Callable[[T], object], batches: Iterator[T], seconds: float
) -> float:
  """How long it takes to read a batch and to call a compiled function on it.

  Batches may differ in their shapes: the first of each shape is called twice,
  and compilation is not counted.

  Args:
    call: of a batch; returns when it is done.
    batches: as a run has them.
    seconds: for how long to measure; less if there are too few batches.
  """
  total, count, known = 0.0, 0, set()
  while total < seconds or count < _FEWEST:
    start = time.perf_counter()
    if (batch := next(batches, None)) is None:
      break
    total += time.perf_counter() - start
    shapes = tuple(x.shape for x in jax.tree.leaves(batch))
    if shapes not in known:
      known.add(shapes)
      call(batch)
    start = time.perf_counter()
    call(batch)
    total += time.perf_counter() - start
    count += 1
  return total / count
