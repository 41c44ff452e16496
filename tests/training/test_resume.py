"""Interrupted runs end bit-equal to uninterrupted ones and survive damage."""

import json
import logging
import os
import random
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nam_jax import training
from nam_jax.training import UserError, metrics_log
from tests.training import toy

# The log lines (every 4) and checkpoints (every 5) do not coincide.
CONFIG = {"num_steps": 40}
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
  """The folder of an undisturbed run."""
  workdir = tmp_path_factory.mktemp("runs") / "unbroken"
  toy.run(workdir, toy.make_config(**CONFIG))
  return workdir


def _results(workdir):
  return json.loads((workdir / "results.json").read_text())


def _rows(workdir):
  """The lines of metrics.jsonl without the times."""
  rows = map(json.loads, (workdir / "metrics.jsonl").read_text().splitlines())
  times = metrics_log.TIME_FIELDS
  return [{k: v for k, v in row.items() if k not in times} for row in rows]


def _interrupted(workdir, number, step):
  """Runs the toy as a command that gets a signal while it makes a batch."""
  return subprocess.run(
    [sys.executable, toy.__file__, workdir, json.dumps(CONFIG)],
    env=os.environ | {"TOY_SIGNAL": f"{number}@{step}", "PYTHONPATH": ROOT},
    capture_output=True,
    text=True,
    timeout=100,
  )


def _continue_and_compare(workdir, unbroken):
  toy.run(workdir, toy.make_config(**CONFIG))
  assert _results(workdir) == _results(unbroken)
  assert _rows(workdir) == _rows(unbroken)
  seconds = [row["seconds"] for row in _full_rows(workdir)]
  assert seconds == sorted(seconds)


def _full_rows(workdir):
  lines = (workdir / "metrics.jsonl").read_text().splitlines()
  return [json.loads(line) for line in lines]


def test_kill_at_a_random_step_then_the_same_command(tmp_path, unbroken):
  step = random.SystemRandom().randrange(7, 40)
  done = _interrupted(tmp_path, signal.SIGKILL.value, step)
  assert done.returncode == -signal.SIGKILL, done.stderr
  assert not (tmp_path / "results.json").exists()
  with open(tmp_path / "metrics.jsonl", "a") as file:
    file.write('{"step": 3, "ki')  # as if killed while writing a line
  _continue_and_compare(tmp_path, unbroken)


def test_sigterm_saves_the_step_then_the_same_command(tmp_path, unbroken):
  done = _interrupted(tmp_path, signal.SIGTERM.value, 17)
  assert done.returncode == 128 + signal.SIGTERM, done.stderr
  assert "stopped by SIGTERM after step" in done.stdout
  assert "run the same command to continue" in done.stdout
  newest = max(int(p.name) for p in (tmp_path / "checkpoints").iterdir())
  assert f"after step {newest}, saved" in done.stdout
  assert 10 <= newest <= 20
  _continue_and_compare(tmp_path, unbroken)


def test_sigint_within_this_process(tmp_path, unbroken, monkeypatch):
  monkeypatch.setenv("TOY_SIGNAL", f"{signal.SIGINT.value}@22")
  handler = signal.getsignal(signal.SIGINT)
  with pytest.raises(SystemExit) as stopped:
    toy.run(tmp_path, toy.make_config(**CONFIG))
  assert stopped.value.code == 130
  assert signal.getsignal(signal.SIGINT) is handler
  monkeypatch.delenv("TOY_SIGNAL")
  _continue_and_compare(tmp_path, unbroken)


def test_stop_before_the_first_log_line_can_be_loaded(tmp_path, monkeypatch):
  rare = toy.make_config(num_steps=100, log_every=50, eval_every=50)
  monkeypatch.setenv("TOY_SIGNAL", f"{signal.SIGINT.value}@9")
  with pytest.raises(SystemExit):
    toy.run(tmp_path, rare)
  stopped = training.load(rare, tmp_path, toy.init_fn)
  assert stopped.history == []
  assert stopped.seconds > 0


def _damage_truncated(folder):
  file = max(folder.rglob("d/*"), key=lambda p: p.stat().st_size)
  os.truncate(file, file.stat().st_size // 2)
  return f"{file.relative_to(folder)} has changed"


def _damage_deleted(folder):
  (folder / "state" / "manifest.ocdbt").unlink()
  return "state/manifest.ocdbt is missing"


def _damage_seal(folder):
  (folder / "seal.json").write_text("{")
  return "Expecting property name"


def _damage_score(folder):
  """The newest checkpoint becomes the best one by far."""
  seal = json.loads((folder / "seal.json").read_text())
  (folder / "seal.json").write_text(json.dumps(seal | {"score": 9.0}))
  return "seal.json has changed"


def _damage_name(folder):
  """One flipped bit in the name of an array."""
  content = (folder / "seal.json").read_bytes()
  changed = content.replace(b"params/hidden", b"params/hiddeo")
  assert changed != content
  (folder / "seal.json").write_bytes(changed)
  return "seal.json has changed"


def _damage_key(folder):
  """One flipped bit in the name of the seal's own checksum."""
  content = (folder / "seal.json").read_bytes()
  (folder / "seal.json").write_bytes(content.replace(b"crc32", b"crc33"))
  return "seal.json has changed"


def _damage_kind(folder):
  (folder / "seal.json").write_text("[1]")
  return ""


def _damage_flipped(folder):
  file = max(folder.rglob("d/*"), key=lambda p: p.stat().st_size)
  content = bytearray(file.read_bytes())
  content[len(content) // 2] ^= 1
  file.write_bytes(content)
  return f"{file.relative_to(folder)} has changed"


@pytest.mark.parametrize(
  "damage",
  [
    _damage_truncated,
    _damage_deleted,
    _damage_seal,
    _damage_score,
    _damage_name,
    _damage_key,
    _damage_kind,
    _damage_flipped,
  ],
)
def test_damaged_newest_checkpoint_falls_back_with_a_warning(
  tmp_path, unbroken, damage, caplog
):
  workdir = tmp_path / "run"
  shutil.copytree(unbroken, workdir)
  (workdir / "results.json").unlink()
  reason = damage(workdir / "checkpoints" / "40")
  broken = sorted(p for p in (workdir / "checkpoints" / "40").rglob("*"))
  with caplog.at_level(logging.WARNING):
    _continue_and_compare(workdir, unbroken)
  (warning,) = [r.message for r in caplog.records if "damaged" in r.message]
  assert reason in warning
  assert "continuing from step 35" in warning
  kept = sorted(p for p in (workdir / "damaged" / "40").rglob("*"))
  assert len(kept) == len(broken)


def test_a_run_is_read_beside_a_checkpoint_with_a_damaged_time(
  tmp_path, unbroken, caplog
):
  workdir = tmp_path / "run"
  shutil.copytree(unbroken, workdir)
  file = workdir / "checkpoints" / "40" / "_CHECKPOINT_METADATA"
  text = re.sub(r"\d{19}", "9" * 5000, file.read_text())  # no JSON to Python
  file.write_text(text)
  found = toy.training.load(toy.make_config(**CONFIG), workdir, toy.init_fn)
  assert int(found.state.step) == 35
  (notice,) = toy.notices(caplog)
  assert notice.endswith("40 is damaged (_CHECKPOINT_METADATA has changed)")


def test_unfinished_checkpoint_is_removed_with_a_warning(
  tmp_path, unbroken, caplog
):
  workdir = tmp_path / "run"
  shutil.copytree(unbroken, workdir)
  (workdir / "checkpoints" / "40" / "seal.json").unlink()
  toy.training.load(toy.make_config(**CONFIG), workdir, toy.init_fn)
  (notice,) = toy.notices(caplog)
  assert notice.endswith("checkpoints/40 is incomplete")
  _continue_and_compare(workdir, unbroken)
  assert "40 is incomplete and was removed, continuing from" in caplog.text
  assert not (workdir / "damaged").exists()


def test_no_sound_checkpoint_starts_again_and_keeps_the_remains(
  tmp_path, unbroken, caplog
):
  workdir = tmp_path / "run"
  shutil.copytree(unbroken, workdir)
  folders = sorted((workdir / "checkpoints").iterdir())
  for folder in folders:
    _damage_deleted(folder)
  _continue_and_compare(workdir, unbroken)
  assert caplog.text.count("starting again") == len(folders)


def test_checkpoint_of_another_model_is_an_error(tmp_path, unbroken):
  workdir = tmp_path / "run"
  shutil.copytree(unbroken, workdir)

  def other_init(key):
    variables = toy.init_fn(key)
    variables["params"]["scale"] = variables["stats"]["mean"]
    return variables

  message = (
    r"40 belongs to another model: .*/scale is absent there and float32\[8\]"
  )
  with pytest.raises(UserError, match=message):
    toy.training.fit(
      toy.make_config(**CONFIG),
      workdir,
      other_init,
      toy.loss_fn,
      toy.Rows(0, 20),
      lambda state: {},
    )
  assert sorted(p.name for p in workdir.iterdir()) == sorted(
    p.name for p in unbroken.iterdir()
  )


def _stopped_at_20(workdir, monkeypatch):
  """A run that stops after the checkpoint of step 20."""
  monkeypatch.setenv("TOY_SIGNAL", f"{signal.SIGINT.value}@19")
  with pytest.raises(SystemExit):
    toy.run(workdir, toy.make_config(**CONFIG))
  monkeypatch.delenv("TOY_SIGNAL")
  return max(int(p.name) for p in (workdir / "checkpoints").iterdir())


ODD = (
  b"3",
  b"[]",
  b"null",
  b'{"kind": "train", "seconds": 1.0}',
  b'{"step": "3", "kind": "train", "seconds": 1.0}',
  b'{"step": 3, "kind": "train", "seconds": 1.0, "loss": Infinity}',
  b'{"step": 3, "kind": "train"}',
  b"\xff\xfe",
  b"[" * 100_000,
)


def test_damaged_rows_are_set_aside_and_missing_ones_counted(
  tmp_path, unbroken, caplog, monkeypatch
):
  step = _stopped_at_20(tmp_path, monkeypatch)
  path = tmp_path / "metrics.jsonl"
  _, *rest = path.read_bytes().splitlines(keepends=True)
  path.write_bytes(b"".join(line + b"\n" for line in ODD) + b"".join(rest))
  with caplog.at_level(logging.WARNING):
    toy.run(tmp_path, toy.make_config(**CONFIG))
  aside, missing = toy.notices(caplog)
  assert f"moved {len(ODD)} damaged line(s) of {path} to" in aside
  expected = step // 4 + step // 5
  assert (
    f"{path} has {expected - 1} rows up to step {step}, but had {expected} when"
    in missing
  )
  moved = (tmp_path / "metrics.damaged.jsonl").read_bytes()
  assert moved.split(b"\n")[:-1] == list(ODD)
  assert _results(tmp_path) == _results(unbroken)
  assert _rows(tmp_path) == _rows(unbroken)[1:]


def test_a_number_that_has_changed_is_noticed(tmp_path, caplog, monkeypatch):
  step = _stopped_at_20(tmp_path, monkeypatch)
  path = tmp_path / "metrics.jsonl"
  first, rest = path.read_text().split("\n", 1)
  row = json.loads(first)
  row["loss"] += 1
  path.write_text(json.dumps(row) + "\n" + rest)
  with caplog.at_level(logging.WARNING):
    toy.run(tmp_path, toy.make_config(**CONFIG))
    toy.run(tmp_path, toy.make_config(**CONFIG))
  (notice,) = toy.notices(caplog)
  assert f"{path} has changed: some of its rows up to step {step}" in notice


def test_a_finished_run_without_its_metrics_keeps_its_duration(
  tmp_path, unbroken, caplog
):
  shutil.copytree(unbroken, tmp_path / "run")
  (tmp_path / "run" / "metrics.jsonl").write_text("")
  config = toy.make_config(**CONFIG)
  loaded = toy.training.load(config, tmp_path / "run", toy.init_fn)
  assert loaded.history == []
  assert loaded.seconds > 0
  assert toy.run(tmp_path / "run", config).seconds == loaded.seconds
  (notice,) = toy.notices(caplog)
  assert "has 0 rows up to step 40, but had 18 when" in notice


def test_odd_rows_are_left_out_when_a_run_is_read(tmp_path, caplog):
  good = b'{"step": 4, "kind": "eval", "seconds": 1.5, "loss": null}'
  content = b"\n".join([ODD[0], good, good[:30]])
  (tmp_path / "metrics.jsonl").write_bytes(content)
  assert metrics_log.read_metrics(tmp_path) == [json.loads(good)]
  (notice,) = toy.notices(caplog)
  assert "left out 1 damaged line(s) of" in notice
  (tmp_path / "metrics.jsonl").unlink()
  (tmp_path / "metrics.jsonl").mkdir()
  with pytest.raises(UserError, match=r"cannot read .*metrics\.jsonl"):
    metrics_log.read_metrics(tmp_path)
