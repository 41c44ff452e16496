"""Mutated data files: readers that fail in other ways than a line are found."""

import gzip
import random
import sys

import pytest

from chaos import files, mutations, readers, worker
from chaos.case import Case
from chaos.lab import Lab
from data_files.errors import DataError


@pytest.fixture
def trial(tmp_path, monkeypatch):
  """Makes a verdict on some seeds, in a folder of this test."""
  monkeypatch.setenv("XDG_CACHE_HOME", "")  # is set by what follows
  run = files.make_trial(Lab(tmp_path / "undisturbed", 60))

  def verdict(seed):
    case = Case("files", seed, tmp_path / "kept" / str(seed), 60)
    run(case)
    return case.verdict()

  return verdict


def test_every_reader_survives(trial):
  told = [trial(seed) for seed in range(60)]
  assert [verdict.line() for verdict in told if verdict.faults] == []
  assert len({verdict.story.partition(",")[0] for verdict in told}) > 8


def _write(folder):
  (folder / "a.txt").write_text("1 2 3")


def _raise_key_error(folder):
  raise KeyError(str(folder))


def _raise_long_error(folder):
  raise DataError(f"{folder}: it\nhas\nlines")


def _raise_vague_error(folder):
  del folder
  raise DataError("something is wrong")


def _same_fingerprint(folder):
  return (folder / "a.txt").read_text(errors="replace"), "always"


@pytest.mark.parametrize(
  ("read", "fault", "why"),
  [
    (_raise_key_error, "tracebacks", "KeyError"),
    (_raise_long_error, "tracebacks", "is no short line"),
    (_raise_vague_error, "tracebacks", "names no file"),
    (_same_fingerprint, "wrong", "has the same fingerprint"),
  ],
)
def test_a_planted_fault_is_found(trial, monkeypatch, read, fault, why):
  def sound_once(folder, calls=[]):  # noqa: B006
    calls.append(folder)
    is_sound = len(calls) == 1 and read is not _same_fingerprint
    return ("content", "fingerprint") if is_sound else read(folder)

  reader = readers.Reader(_write, sound_once)
  monkeypatch.setattr(readers, "READERS", {"planted": reader})
  (verdict,) = [v for v in map(trial, range(1)) if v.faults]
  assert list(verdict.faults) == [fault]
  assert why in verdict.faults[fault]


def test_a_packed_file_is_also_changed_inside():
  packed, rng = gzip.compress(b"1 2 3" * 100), random.Random(0)
  changed = [mutations.mutate(rng, "a.gz", packed) for _ in range(50)]
  inside = [m for m in changed if not m.is_checked]
  assert 5 < len(inside) < 30
  assert any(gzip.decompress(m.content) != b"1 2 3" * 100 for m in inside)


@pytest.mark.parametrize(("limit", "fault"), [(100, "tracebacks"), (0, "hung")])
def test_the_death_of_a_worker_is_blamed(tmp_path, monkeypatch, limit, fault):
  monkeypatch.setattr(sys, "executable", "true")
  dies = worker.Worker("files", tmp_path, limit)
  for seed in range(2):
    verdict = dies.trial(Case("files", seed, tmp_path, limit))
    assert verdict.faults == {fault: "status 0"}
  dies.close()
