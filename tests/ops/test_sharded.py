"""A sequence split over four devices, in a process that has them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = Path(__file__).with_name("on_four_devices.py")


def test_four_devices_equal_one():
  flags = os.environ["XLA_FLAGS"]
  flags += " --xla_force_host_platform_device_count=4"
  run = subprocess.run(
    [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS],
    cwd=ROOT,
    env=os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
    capture_output=True,
    text=True,
  )
  assert run.returncode == 0, run.stdout + run.stderr
