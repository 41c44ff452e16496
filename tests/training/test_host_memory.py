"""Freed memory is used again, without page faults."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from nam_jax.training import host_memory
if {keep}:
  host_memory.keep_freed_memory()
np.ones(25_000_000)  # 200 MB, freed at once
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(25_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(keep):
  run = subprocess.run(
    [sys.executable, "-c", FAULTS.format(keep=keep)],
    capture_output=True,
    text=True,
  )
  assert run.returncode == 0, run.stderr
  return int(run.stdout)


@pytest.mark.skipif(
  platform.libc_ver()[0] != "glibc", reason="glibc's allocator is not here"
)
def test_a_block_that_was_freed_needs_no_new_pages():
  assert faults(keep=True) < 100
  # Huge pages of 2 MiB at most are the alternative.
  assert faults(keep=False) >= 90
