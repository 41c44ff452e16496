"""Freed memory is reused without page faults."""

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
import numpy as np
from nam_jax.training import host_memory


def faults():
  np.ones(25_000_000)  # 200 MB, freed at once
  before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
  np.ones(25_000_000)
  return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


print(faults())
host_memory.keep_freed_memory()
print(faults())
"""


@pytest.mark.skipif(
  platform.libc_ver()[0] != "glibc", reason="glibc's allocator is not here"
)
def test_a_block_that_was_freed_needs_no_new_pages():
  run = subprocess.run(
    [sys.executable, "-c", FAULTS], capture_output=True, text=True
  )
  assert run.returncode == 0, run.stderr
  before, after = map(int, run.stdout.split())
  assert before >= 90  # with huge pages of 2 MiB; more with smaller ones
  assert after < 100
