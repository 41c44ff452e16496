"""Ctrl-C before there is anything to save."""

import subprocess

import pytest

from tests import processes, project_tree
from tests.command_line import interrupted


@pytest.mark.parametrize("moment", ["import", "read", "compile"])
def test_ctrl_c_before_the_loop_is_one_line_and_status_130(moment, tmp_path):
  script = str(project_tree.ROOT / "train_algorithmic.py")
  process = processes.start(
    [interrupted.__file__, moment, script, f"--workdir={tmp_path}"],
    {},
    stderr=subprocess.PIPE,
  )
  _, errors = process.communicate(timeout=100)
  assert process.returncode == 130, errors
  (line,) = errors.splitlines()
  assert line == ("stopped at once by SIGINT; run the same command to continue")
  assert not list(tmp_path.glob("checkpoints/*"))


_AT_THE_VERY_END = """
import os, signal
from command_line import interrupt

class Last:
  def __del__(self):
    os.kill(os.getpid(), signal.SIGINT)

interrupt.install()
last = Last()
raise SystemExit(3)
"""


def test_ctrl_c_when_python_ends_does_not_change_the_status():
  process = processes.start(["-c", _AT_THE_VERY_END], {})
  assert processes.finish([process], [3]) == [""]
