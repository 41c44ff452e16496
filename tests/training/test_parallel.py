"""Two processes, or four devices, compute what one device computes."""

import json

import pytest

from nam_jax.training import metrics_log
from tests import processes
from tests.training import toy

CONFIG = {"num_steps": 12, "log_every": 1, "eval_every": 6}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
  """The folder of a run on one device."""
  workdir = tmp_path_factory.mktemp("runs") / "alone"
  toy.run(workdir, toy.make_config(**CONFIG))
  return workdir


def _start(workdir, environment):
  arguments = [toy.__file__, workdir, json.dumps(CONFIG)]
  return processes.start(arguments, environment)


def _numbers(workdir):
  """Loss, accuracy, gradient norm, ... of every row, and of the best state."""
  rows = [
    *map(json.loads, (workdir / "metrics.jsonl").read_text().splitlines())
  ]
  rows.append(json.loads((workdir / "results.json").read_text())["best"])
  left_out = ("kind", *metrics_log.TIME_FIELDS)
  return [{k: v for k, v in row.items() if k not in left_out} for row in rows]


def _compare(workdir, alone):
  ours, theirs = _numbers(workdir), _numbers(alone)
  assert len(ours) == len(theirs) == 12 + 2 + 1
  for a, b in zip(ours, theirs, strict=True):
    assert a == pytest.approx(b, rel=1e-5, abs=1e-5)


def test_two_processes_equal_one(tmp_path, alone):
  common = {
    "JAX_COORDINATOR_ADDRESS": f"localhost:{processes.free_port()}",
    "JAX_NUM_PROCESSES": "2",
  }
  first, second = processes.finish(
    [_start(tmp_path, common | {"JAX_PROCESS_ID": i}) for i in ("0", "1")]
  )
  assert "step 12/12" in first
  assert "step" not in second
  _compare(tmp_path, alone)


def test_four_devices_equal_one(tmp_path, alone):
  flags = "--xla_force_host_platform_device_count=4"
  processes.finish([_start(tmp_path, {"XLA_FLAGS": flags})])
  _compare(tmp_path, alone)
