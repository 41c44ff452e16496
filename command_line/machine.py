"""What a run uses of its machine: cores and memory."""

import os
import resource
import sys
from typing import Any

import jax


def cores() -> list[int]:
  """The cores that this thread may use, by number."""
  if hasattr(os, "sched_getaffinity"):
    return sorted(os.sched_getaffinity(0))
  return list(range(os.cpu_count() or 1))


def pin(wanted: list[int]) -> None:
  """Keeps this thread, and processes it starts, on some cores, if possible."""
  if wanted and hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, wanted)


def peak_memory() -> int:
  """Most bytes so far: on an accelerator, or of this process on a CPU."""
  if stats := jax.local_devices()[0].memory_stats():
    return stats["peak_bytes_in_use"]
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return peak if sys.platform == "darwin" else 1024 * peak


def about() -> dict[str, Any]:
  """The device, and the number of cores."""
  return {"device": jax.devices()[0].device_kind, "cores": len(cores())}
