"""A run keeps to its data; one without a fingerprint still continues."""

import json
import logging

import numpy as np
import pytest

from nam_jax import training
from nam_jax.training import checkpoint, fingerprint, whole_files
from tests.training import toy

CONFIG = {"num_steps": 4, "checkpoint_every": 2, "eval_every": 2}


def _data(seed=0, count=6, **files):
  rows = toy.make_rows(np.random.default_rng(seed), count)
  return fingerprint.make({"train": [*rows.values()]}, files)


def _fit(workdir, data, **overrides):
  config = toy.make_config(**CONFIG | overrides)
  return training.fit(
    config,
    workdir,
    toy.init_fn,
    toy.loss_fn,
    toy.make_batch_fn(config),
    lambda state: {"accuracy": float(state.step)},
    data,
  )


def _load(workdir, data):
  return training.load(toy.make_config(**CONFIG), workdir, toy.init_fn, data)


def _json(path):
  return json.loads(path.read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  """The folder of a run on rows with a fingerprint."""
  workdir = tmp_path_factory.mktemp("runs") / "finished"
  _fit(workdir, _data(rows=100))
  training.write_results(workdir, {"found": 1})
  return workdir


def test_config_and_results_say_what_was_read(finished):
  data = _data(rows=100)
  assert data["files"] == [{"name": "rows", "bytes": 100}]
  assert data["splits"]["train"]["rows"] == 6
  for name in ("config.json", "results.json"):
    assert _json(finished / name)["fingerprint"] == data
  config = training.from_config_dict(_json(finished / "config.json"))
  assert config == toy.make_config(**CONFIG)


@pytest.mark.parametrize(
  ("data", "message"),
  [
    (
      _data(seed=1, rows=100),
      r"train has 6 other rows \(sha256 \w{8} there, \w{8} here\); use the",
    ),
    (
      _data(count=7, rows=120),
      "train has 6 rows there and 7 here; file rows has 100 bytes there and 120"
      " here; use",
    ),
    (
      _data(count=7, more=3),
      "rows has 100 bytes there and no here; file more has no bytes there",
    ),
  ],
)
def test_other_data_are_refused_and_nothing_changes(finished, data, message):
  before = {p: p.read_bytes() for p in finished.rglob("*") if p.is_file()}
  for call in (_fit, _load):
    with pytest.raises(training.UserError, match=message) as error:
      call(finished, data)
    assert "holds a run with other data" in str(error.value)
    assert "\n" not in str(error.value)
  assert before == {p: p.read_bytes() for p in before}


def test_the_same_rows_from_another_file_are_the_same_data(finished):
  assert int(_load(finished, _data(copy=7)).state.step) == 4


@pytest.mark.parametrize(
  "damage",
  [
    {"splits": 3},
    {"files": 3},
    {"files": [{"nome": "a.txt", "bytes": 1}]},
    {"files": None},
  ],
  ids=str,
)
def test_a_damaged_fingerprint_is_one_line(finished, tmp_path, damage):
  fields = _json(finished / "config.json")
  fields["fingerprint"] |= damage
  whole_files.write_json(tmp_path / "config.json", fields)
  with pytest.raises(training.UserError, match=r"fingerprint .* is damaged"):
    _load(tmp_path, _data())


def test_all_bytes_types_and_shapes_count():
  zeros = np.zeros((4, 3), np.int32)
  changed = zeros.copy()
  changed[3, 2] = 1
  arrays = (zeros, changed, zeros.astype(np.int64), zeros.reshape(4, 3, 1))
  found = [fingerprint.make({"train": [array]}) for array in arrays]
  digests = {data["splits"]["train"]["sha256"] for data in found}
  assert len(digests) == len(arrays)
  strided = np.zeros((4, 6), np.int32)[:, ::2]
  assert fingerprint.make({"train": [strided]}) == found[0]


def test_a_large_array_is_read_in_parts(monkeypatch):
  rows = np.arange(50).reshape(10, 5)
  whole = fingerprint.make({"train": [rows]})
  monkeypatch.setattr(fingerprint, "_AT_ONCE", 90)
  assert fingerprint.make({"train": [rows]}) == whole
  assert len(list(fingerprint._parts(rows))) == 5


def test_some_of_the_splits_are_compared():
  theirs = fingerprint.make({"train": [np.zeros(2)], "test": [np.ones(3)]})
  ours = fingerprint.make({"train": [np.ones(2)], "test": [np.ones(3)]})
  assert fingerprint.differences(theirs, ours)
  ours = fingerprint.only(ours, ["test"])
  assert fingerprint.differences(theirs, ours) == []


def _as_older_version(workdir):
  """Makes a folder what the version before fingerprints left behind."""
  (workdir / "lock.json").unlink()
  fields = _json(workdir / "config.json")
  del fields["fingerprint"]
  whole_files.write_json(workdir / "config.json", fields)
  for folder in (workdir / "checkpoints").iterdir():
    seal = _json(folder / "seal.json")
    del seal["crc32"]
    (memory,) = [p for p in (folder / "memory").iterdir() if _rows_in(p)]
    content = _json(memory)
    del content["rows"]
    memory.write_text(json.dumps(content))
    name = str(memory.relative_to(folder))
    seal["files"][name] = whole_files.checksum(memory)
    whole_files.write_json(folder / "seal.json", seal)


def _rows_in(path):
  return b'"rows"' in path.read_bytes()


def test_a_run_of_an_older_version_continues_with_one_notice(
  finished, tmp_path, monkeypatch, caplog
):
  save = checkpoint.Checkpoints.save

  def stop_after(self, step, *rest):
    save(self, step, *rest)
    if step == 2:
      raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(checkpoint.Checkpoints, "save", stop_after)
    with pytest.raises(KeyboardInterrupt):
      _fit(tmp_path, _data(rows=100))
  _as_older_version(tmp_path)
  with caplog.at_level(logging.WARNING):
    continued = _fit(tmp_path, _data(seed=1))
  (notice,) = toy.notices(caplog)
  assert f"{tmp_path} has no fingerprint" in notice
  assert toy.digest(continued.state) == toy.digest(
    _load(finished, _data()).state
  )
  assert "fingerprint" not in _json(tmp_path / "config.json")
  caplog.clear()
  with caplog.at_level(logging.WARNING):
    _load(tmp_path, _data())
  assert len(toy.notices(caplog)) == 1
