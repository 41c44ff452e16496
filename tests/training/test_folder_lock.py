"""A folder belongs to one run at a time."""

import errno
import json
import logging
import os
import signal
import subprocess
import sys

import pytest

from nam_jax import training
from nam_jax.training import devices, folder_lock, run_dir
from tests.training import toy

CONFIG = {"num_steps": 2}
# Another process, which needs no JAX, with the lock of the folder.
HOLDER = """
import fcntl, json, os, sys, time
file = open(sys.argv[1], "a+")
fcntl.flock(file, fcntl.LOCK_EX)
who = {"host": "far", "process": os.getpid(), "started": "2026-01-02 03:04:05"}
file.write(json.dumps(who))
file.flush()
print("locked", flush=True)
time.sleep(100)
"""


def _files(folder):
  paths = sorted(p for p in folder.rglob("*") if p.is_file())
  return {p.relative_to(folder): p.read_bytes() for p in paths}


def test_a_second_run_is_refused_until_the_first_is_killed(tmp_path):
  config = toy.make_config(**CONFIG)
  holder = subprocess.Popen(
    [sys.executable, "-c", HOLDER, tmp_path / "lock.json"],
    stdout=subprocess.PIPE,
    text=True,
  )
  try:
    assert holder.stdout.readline() == "locked\n"
    before = _files(tmp_path)
    message = (
      f"is in use by process {holder.pid} on far, started 2026-01-02 03:04:05;"
    )
    with pytest.raises(training.UserError, match=message) as error:
      toy.run(tmp_path, config)
    assert "\n" not in str(error.value)
    assert _files(tmp_path) == before
  finally:
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
  assert int(toy.run(tmp_path, config).state.step) == 2
  who = json.loads((tmp_path / "lock.json").read_text())
  assert who["process"] == os.getpid()
  assert set(who) == {"host", "process", "started"}


def test_a_run_in_use_can_be_tested_and_two_fits_follow_each_other(tmp_path):
  config = toy.make_config(**CONFIG)
  toy.run(tmp_path, config)
  with run_dir.owned(tmp_path):
    assert int(training.load(config, tmp_path, toy.init_fn).state.step) == 2
    with pytest.raises(training.UserError, match=f"process {os.getpid()} on"):
      toy.run(tmp_path, config)
  toy.run(tmp_path, config)


def _no_locks(*_):
  raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize(
  ("name", "value", "reason"),
  [
    ("fcntl.flock", _no_locks, "No locks available"),
    ("fcntl", None, "this system has no file locks"),
  ],
)
def test_without_locks_one_line_says_so(
  tmp_path, monkeypatch, caplog, name, value, reason
):
  monkeypatch.setattr(f"nam_jax.training.folder_lock.{name}", value)
  with caplog.at_level(logging.WARNING), folder_lock.held(tmp_path):
    pass
  (notice,) = toy.notices(caplog)
  assert f"cannot lock {tmp_path} ({reason})" in notice


def test_an_unreadable_lock_is_still_a_lock(tmp_path):
  with folder_lock.held(tmp_path):
    (tmp_path / "lock.json").write_bytes(b"\xff")
    with (
      pytest.raises(training.UserError, match="in use by another process"),
      folder_lock.held(tmp_path),
    ):
      pass


def test_other_processes_learn_that_the_first_was_refused(
  tmp_path, monkeypatch
):
  monkeypatch.setattr(devices, "is_main", lambda: False)
  monkeypatch.setattr(devices, "told_by_main", lambda _: False)
  with (
    pytest.raises(training.UserError, match="process 0 cannot use the folder"),
    run_dir.owned(tmp_path),
  ):
    pass
  assert not list(tmp_path.iterdir())
