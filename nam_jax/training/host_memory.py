"""Large arrays on a CPU without page faults."""

import ctypes
import os
import sys

# From malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8


def keep_freed_memory() -> None:
  """Lets glibc keep freed memory for the next step to reuse.

  By default it returns blocks of over 32 MiB to the system, and the next step
  waits while every page is mapped and cleared again: up to half of a training
  step on a CPU. Does nothing except on Linux with glibc.

  glibc gives every thread its own arena, which would keep its own freed memory.
  One per core is enough to keep threads from waiting for each other.
  """
  if sys.platform != "linux":
    return
  mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
  if mallopt is None:
    return
  mallopt(_M_MMAP_MAX, 0)
  mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
  mallopt(_M_TOP_PAD, 2**26)
  mallopt(_M_ARENA_MAX, os.cpu_count() or 1)
