"""Trials of runs find what is lost, wrong, hung or a traceback."""

import signal
import subprocess
from pathlib import Path

import pytest

from chaos import damages, disks, doubles, kills, processes, stops, toy
from chaos.case import Case
from chaos.lab import Lab, Times
from nam_jax.training import metrics_log, stopping, whole_files
from report import page

FAKE = Path(__file__).with_name("fake_toy.py")
TRIALS = {
  "kills": kills.trial,
  "doubles": doubles.trial,
  "stops": stops.trial,
  "disks": disks.trial,
}


@pytest.fixture(scope="module")
def imitated(tmp_path_factory):
  """Undisturbed runs of the imitation."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(processes, "PROGRAM", (str(FAKE),))
    lab = Lab(tmp_path_factory.mktemp("fake") / "undisturbed", limit=30)
    lab.make()
    lab.make_two()
    yield lab


@pytest.fixture(scope="module")
def real(tmp_path_factory):
  """Undisturbed runs of the toy, made in this process."""
  lab = Lab(tmp_path_factory.mktemp("real"), limit=100)
  toy.run(lab.folder / "whole")

  def received(self, step):
    del self
    return signal.SIGTERM if step == 24 else None

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(stopping.StopRequest, "received", received)
    with pytest.raises(SystemExit):
      toy.run(lab.folder / "half")
  times = Times(start=1.0, loop=0.5)
  whole_files.write_json(lab.folder / "times.json", times._asdict())
  return lab


def _verdict(kind, seed, folder, lab, limit=None):
  case = Case(kind, seed, folder, limit or lab.limit)
  TRIALS[kind](case, lab)
  return case.verdict()


def _in_the_loop(rng):
  """Whether a trial chooses a moment after some steps."""
  return rng.random() >= 0.3 and rng.uniform(0, 1) > 0.2


def _is_kill(rng):
  return _in_the_loop(rng) and rng.choice(kills.SIGNALS) == (signal.SIGKILL,)


def _is_late_stop(rng):
  rng.choice(stops.SIGNALS)
  rng.choice(stops.HIT)
  return _in_the_loop(rng)


# Trials whose run has saved something by then.
_LATE = {"kills": _is_kill, "stops": _is_late_stop}


def _seed(kind, chosen):
  """The first seed of a trial with these choices."""
  seeds = (s for s in range(1000) if chosen(Case(kind, s, Path(), 1).rng))
  return next(seeds)


def test_a_killed_run_ends_bit_equal(real, tmp_path):
  verdict = _verdict("kills", _seed("kills", _is_kill), tmp_path, real)
  assert verdict.faults == {}, verdict.line()
  assert "SIGKILL" in verdict.story


@pytest.fixture
def unmounted(monkeypatch):
  """No small disk is mounted; large files are refused instead."""
  monkeypatch.setattr(disks, "stand_in", lambda: "a limit")


@pytest.mark.usefixtures("unmounted")
@pytest.mark.parametrize("kind", TRIALS)
def test_what_survives_has_no_fault(imitated, tmp_path, kind):
  verdict = _verdict(kind, 0, tmp_path, imitated)
  assert verdict.faults == {}, verdict.line()
  assert verdict.kind == kind
  assert ("status 2, status 2" in verdict.story) == (kind == "disks")


@pytest.mark.parametrize("kind", ["kills", "stops"])
@pytest.mark.parametrize(
  ("planted", "found"),
  [
    ("lost", {"lost": "continued from step 0"}),
    ("wrong", {"wrong": "results.json differs in loss"}),
    ("crash", {"tracebacks": "Traceback"}),
  ],
)
def test_a_planted_fault_is_found(
  imitated, tmp_path, monkeypatch, kind, planted, found
):
  monkeypatch.setenv("FAULT", planted)
  verdict = _verdict(kind, _seed(kind, _LATE[kind]), tmp_path, imitated)
  assert verdict.faults.keys() == found.keys(), verdict.line()
  ((fault, why),) = found.items()
  assert why in verdict.faults[fault]


def _is_early_term(rng):
  """Whether a trial sends SIGTERM soon after the first step."""
  is_late = rng.random() < 0.3 or rng.uniform(0, 1) > 0.1
  return not is_late and rng.choice(kills.SIGNALS)[0] == signal.SIGTERM


def test_a_signal_without_effect_is_wrong(imitated, tmp_path, monkeypatch):
  monkeypatch.setenv("FAULT", "deaf")
  seed = _seed("kills", _is_early_term)
  verdict = _verdict("kills", seed, tmp_path, imitated)
  assert verdict.faults.keys() == {"wrong"}, verdict.line()
  assert verdict.faults["wrong"] == "SIGTERM had no effect"


def test_a_run_that_hangs_is_ended(imitated, tmp_path, monkeypatch):
  monkeypatch.setenv("FAULT", "hang")
  verdict = _verdict("doubles", 0, tmp_path, imitated, limit=1)
  assert verdict.faults.keys() == {"hung", "lost"}


def test_a_slow_run_that_prints_does_not_hang(tmp_path, monkeypatch):
  class Slow:
    """Prints once in the time that it is waited for, then ends."""

    waited = 0

    def wait(self, seconds):
      self.waited += 1
      if self.waited > 3:
        return 0
      with log.open("a") as file:
        file.write("step\n")
      raise subprocess.TimeoutExpired("toy", seconds)

  log = tmp_path / "log"
  monkeypatch.setattr(processes, "PROGRAM", ("-c", "pass"))
  toy = processes.Toy(tmp_path, log)
  toy.kill()
  monkeypatch.setattr(toy, "_process", Slow())
  case = Case("kills", 0, tmp_path, 1)
  assert toy.end(case, [0]) == 0
  assert case.verdict().faults == {}


@pytest.fixture(scope="module")
def damage(real):
  """Runs a trial."""
  return damages.make_trial(real)


def _damaged(damage, real, folder, pattern):
  """The verdict of the first trial that damages such a file."""
  for seed in range(1000):
    case = Case("damages", seed, folder, real.limit)
    base = real.folder / case.rng.choice(damages.BASES)
    file = damages.choose(case.rng, base).relative_to(base)
    if file.match(pattern):
      case = Case("damages", seed, folder, real.limit)
      damage(case)
      assert str(file) in case.verdict().story
      return case.verdict()
  raise LookupError(pattern)


@pytest.mark.parametrize("pattern", ["seal.json", "config.json"])
def test_a_run_survives_damage(damage, real, tmp_path, pattern):
  verdict = _damaged(damage, real, tmp_path, pattern)
  assert verdict.faults == {}, verdict.line()


def test_rows_that_vanish_without_a_word_are_lost(
  damage, real, tmp_path, monkeypatch
):
  monkeypatch.setattr(metrics_log, "_warn", lambda message: None)
  assert _damaged(damage, real, tmp_path, "metrics.jsonl").faults.keys() == {
    "lost"
  }


def test_a_page_that_crashes_is_a_traceback(
  damage, real, tmp_path, monkeypatch
):
  def build(*_):
    raise KeyError("name")

  monkeypatch.setattr(page, "build", build)
  verdict = _damaged(damage, real, tmp_path, "lock.json")
  assert verdict.faults.keys() == {"tracebacks"}
