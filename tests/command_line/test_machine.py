"""Cores and memory of a run."""

import os
import resource
import subprocess
import sys
import threading
from types import SimpleNamespace

import jax
import pytest

from command_line import machine


def test_a_process_runs_on_the_cores_of_the_thread_that_starts_it():
  if not hasattr(os, "sched_setaffinity"):
    pytest.skip("this system pins no processes")
  allowed, seen = machine.cores(), []

  def pinned():
    machine.pin(allowed[-1:])
    code = "import os; print(*os.sched_getaffinity(0))"
    done = subprocess.run(
      [sys.executable, "-c", code], capture_output=True, check=True
    )
    seen.append([int(core) for core in done.stdout.split()])

  thread = threading.Thread(target=pinned)
  thread.start()
  thread.join()
  assert seen == [allowed[-1:]]
  assert machine.cores() == allowed


def test_no_cores_pin_nothing():
  before = machine.cores()
  machine.pin([])
  assert machine.cores() == before


@pytest.mark.parametrize(("system", "unit"), [("linux", 1024), ("darwin", 1)])
def test_peak_memory_on_a_cpu_is_that_of_the_process(monkeypatch, system, unit):
  usage = SimpleNamespace(ru_maxrss=5000)
  monkeypatch.setattr(resource, "getrusage", lambda _: usage)
  monkeypatch.setattr(sys, "platform", system)
  assert machine.peak_memory() == 5000 * unit


def test_peak_memory_of_an_accelerator_is_its_own(monkeypatch):
  stats = {"peak_bytes_in_use": 7, "bytes_in_use": 3}
  device = SimpleNamespace(memory_stats=lambda: stats)
  monkeypatch.setattr(jax, "local_devices", lambda: [device])
  assert machine.peak_memory() == 7
