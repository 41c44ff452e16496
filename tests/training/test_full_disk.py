"""A full disk ends a run in one line that names the last good checkpoint."""

import errno
import logging
import os
import shutil
import sys
import types

import orbax.checkpoint as ocp
import pytest

from nam_jax import training
from nam_jax.training import full_disk, metrics_log, run_dir, whole_files
from tests.training import toy

FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def half(tmp_path, monkeypatch):
  """A run whose disk is full at its second checkpoint, after step 10."""
  room = iter([1 << 40, 0])
  with monkeypatch.context() as patch:
    patch.setattr(
      shutil,
      "disk_usage",
      lambda _: types.SimpleNamespace(total=1 << 50, free=next(room)),
    )
    line = _refused(tmp_path)
  assert "last good checkpoint: step 5; make room" in line
  assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == ["5"]
  return tmp_path


def _refused(workdir):
  with pytest.raises(training.UserError) as error:
    toy.run(workdir, toy.make_config())
  line = str(error.value)
  assert "\n" not in line
  assert line.startswith(f"cannot write to {workdir}: No space left on device;")
  return line


def _full(*_, **__):
  raise FULL


def _orbax_finds_it_full(patch):
  def save(*_, **__):
    text = 'RESOURCE_EXHAUSTED: writing "x" [OS error 28: No space left on'
    raise ValueError(f"{text} device]")

  patch.setattr(ocp.CheckpointManager, "save", save)


def _seal_finds_it_full(patch):
  patch.setattr(whole_files, "write_json", _full)


def _log_finds_it_full(patch):
  patch.setattr(metrics_log.MetricsLog, "train", _full)


def _start_finds_it_full(patch):
  patch.setattr(whole_files, "write_text", _full)


@pytest.mark.parametrize(
  "full",
  [
    _orbax_finds_it_full,
    _seal_finds_it_full,
    _log_finds_it_full,
    _start_finds_it_full,
  ],
)
def test_retry_says_it_again_and_then_goes_on(half, full, monkeypatch, capsys):
  with monkeypatch.context() as patch:
    full(patch)
    assert "last good checkpoint: step 5; make room" in _refused(half)
  result = toy.run(half, toy.make_config())
  assert int(result.state.step) == 20
  assert "after step 5" in capsys.readouterr().out


@pytest.fixture
def failed(caplog, monkeypatch):
  """Fails as threads of orbax do, and returns what is printed of it."""
  late = types.SimpleNamespace(exc_value=RuntimeError("Event loop is closed"))
  printed = []
  monkeypatch.setattr(
    sys, "unraisablehook", lambda found: printed.append(str(found.exc_value))
  )
  monkeypatch.setattr(logging.getLogger("absl"), "filters", [])

  def fail(error):
    printed.clear()
    caplog.clear()
    try:
      raise error
    except (OSError, ValueError):
      logging.getLogger("absl").exception("a thread failed")
    sys.unraisablehook(late)
    logged = [str(r.exc_info[1]) for r in caplog.records if r.exc_info]
    return logged + printed

  return fail


def test_threads_of_orbax_print_nothing_of_a_full_disk(tmp_path, failed):
  with full_disk.explained(tmp_path):
    assert failed(FULL) == []
    assert failed(ValueError("something else")) == ["something else"]
  assert failed(FULL) == [str(FULL), "Event loop is closed"]


def test_nor_do_they_afterwards(tmp_path, failed):
  with (
    pytest.raises(training.UserError, match="No space left"),
    full_disk.explained(tmp_path),
  ):
    raise FULL
  assert failed(FULL) == []


def test_results_name_the_last_checkpoint(half, monkeypatch):
  monkeypatch.setattr(whole_files, "write_bytes", _full)
  with pytest.raises(training.UserError, match=r"good checkpoint: step 5;"):
    run_dir.write_results(half, {})
