"""Whether a training step fits into the memory of its device.

XLA plans all memory of a program when it compiles it, so a step that is too
large is known before it runs, and before a system kills the process.
"""

import contextlib
import os
from pathlib import Path

import jax

from nam_jax.training.config import TrainConfig
from nam_jax.training.errors import UserError
from nam_jax.training.state import TrainState
from nam_jax.training.step import Batch, Metrics, TrainStep

# What a container may use, where Linux says so.
_CGROUP_LIMITS = (
  "/sys/fs/cgroup/memory.max",
  "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


def checked(train_step: jax.stages.Wrapped, config: TrainConfig) -> TrainStep:
  """The same step; a batch that does not fit raises `UserError` instead.

  Every shape of a batch has one program, compiled when it first comes.
  """
  programs = {}

  def run(state: TrainState, batch: Batch) -> tuple[TrainState, Metrics]:
    shapes = tuple(x.shape for x in batch.values())
    if shapes not in programs:
      program = train_step.lower(state, batch).compile()
      check(bytes_needed(program), bytes_available(), config)
      programs[shapes] = program
    return programs[shapes](state, batch)

  return run


def check(
  needed: int | None, available: int | None, config: TrainConfig
) -> None:
  """Raises `UserError` if a step needs too much; None is unknown."""
  if needed is None or available is None or needed <= available:
    return
  rows = config.batch_size // jax.device_count()
  parts = config.accumulate_steps * needed / available
  enough = [n for n in range(1, rows + 1) if rows % n == 0 and n >= parts]
  advice = f"accumulate_steps={enough[0]}, a" if enough else "a"
  raise UserError(
    f"a training step needs {needed / 2**30:.1f} GiB, but the device has"
    f" {available / 2**30:.1f} GiB: try {advice} smaller batch_size, or an"
    " attention whose memory grows linearly with the length"
  )


def bytes_needed(program: jax.stages.Compiled) -> int | None:
  """Of arguments, results and everything between them, on one device."""
  sizes = program.memory_analysis()
  if sizes is None:
    return None
  return (
    sizes.argument_size_in_bytes
    + sizes.output_size_in_bytes
    - sizes.alias_size_in_bytes
    + sizes.temp_size_in_bytes
  )


def bytes_available() -> int | None:
  """Memory of a device; those of a CPU share the computer's."""
  device, *others = jax.local_devices()
  if device.platform != "cpu":
    return (device.memory_stats() or {}).get("bytes_limit")
  limits = []
  with contextlib.suppress(AttributeError, ValueError):  # not Unix
    limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
  for path in _CGROUP_LIMITS:
    with contextlib.suppress(OSError, ValueError):  # "max": no limit
      limits.append(int(Path(path).read_text()))
  return min(limits) // (1 + len(others)) if limits else None
