"""Two processes stop together, whoever gets the signal, and go on later."""

import json
import signal
import time

import pytest

from nam_jax import training
from tests import processes
from tests.training import toy

CONFIG = {"num_steps": 300, "eval_every": 100, "checkpoint_every": 10}


def _start(workdir, interrupted, number):
  """Two processes, one of which gets a signal in step 20 or so."""
  common = {
    "JAX_COORDINATOR_ADDRESS": f"localhost:{processes.free_port()}",
    "JAX_NUM_PROCESSES": "2",
    "TOY_PAUSE": "0.2",
  }
  arguments = [toy.__file__, workdir, json.dumps(CONFIG)]
  variables = [common | {"JAX_PROCESS_ID": i} for i in ("0", "1")]
  variables[interrupted]["TOY_SIGNAL"] = f"{number.value}@20"
  return [processes.start(arguments, v) for v in variables]


def _continue(workdir, capsys):
  """One process ends what two began."""
  capsys.readouterr()
  result = toy.run(workdir, toy.make_config(**CONFIG))
  assert int(result.state.step) == 300
  (line,) = [
    line
    for line in capsys.readouterr().out.splitlines()
    if line.startswith("continuing the run")
  ]
  return int(line.split()[-1])


def test_ctrl_c_at_one_saves_and_ends_both(tmp_path, capsys):
  started = _start(tmp_path, 1, signal.SIGINT)
  first, second = processes.finish(started, [130, 130])
  assert "Traceback" not in first + second
  step = training.load(
    toy.make_config(**CONFIG), tmp_path, toy.init_fn
  ).state.step
  assert f"stopped by SIGINT after step {step}, saved in {tmp_path}" in first
  assert _continue(tmp_path, capsys) == step


@pytest.mark.parametrize("killed", [0, 1])
def test_killed_process_ends_the_other_in_one_line(tmp_path, killed, capsys):
  started = _start(tmp_path, killed, signal.SIGKILL)
  assert started[killed].wait(timeout=100) == -signal.SIGKILL
  before = time.monotonic()
  statuses = [-signal.SIGKILL, 1] if killed == 0 else [1, -signal.SIGKILL]
  output = processes.finish(started, statuses)[1 - killed]
  assert time.monotonic() - before < 30
  known = ("[Gloo]", "step ", "hidden/", "out/", "total")
  (line,) = [x for x in output.splitlines() if not x.startswith(known)]
  assert line == (
    f"error: process {killed} of this run has ended; run the same command in"
    " every process to continue from the last checkpoint"
  )
  assert _continue(tmp_path, capsys) in (10, 20)
