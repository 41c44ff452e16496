"""Whole runs in this process: what they write and what they reject."""

import json
import os
import shutil
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax import training
from nam_jax.training import checkpoint, metrics_log
from tests.training import toy


def _files(folder):
  """Every file below a folder, with its bytes."""
  paths = sorted(p for p in folder.rglob("*") if p.is_file())
  return {p.relative_to(folder): p.read_bytes() for p in paths}


def _steps(workdir):
  return sorted(int(p.name) for p in (workdir / "checkpoints").iterdir())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  """An undisturbed run: its folder and its result."""
  workdir = tmp_path_factory.mktemp("runs") / "finished"
  return workdir, toy.run(workdir, toy.make_config(tensorboard=True))


def test_metrics_file_has_one_schema(finished):
  workdir, result = finished
  lines = (workdir / "metrics.jsonl").read_text().splitlines()
  rows = [json.loads(line) for line in lines]
  assert rows == result.history
  common = {"step", "kind", "seconds", "loss", "accuracy"}
  pace = {"steps_per_second", "input_wait"}
  train = common | pace | {"grad_norm", "learning_rate"}
  for row in rows:
    assert set(row) == {"train": train, "eval": common}[row["kind"]]
    assert all(
      isinstance(v, float) for k, v in row.items() if k not in ("step", "kind")
    )
  steps = {
    k: [r["step"] for r in rows if r["kind"] == k] for k in ("train", "eval")
  }
  assert steps == {"train": [4, 8, 12, 16, 20], "eval": [5, 10, 15, 20]}
  assert rows[0]["learning_rate"] == pytest.approx(0.05 * 3 / 4)
  assert set(metrics_log.TIME_FIELDS) < train


def test_run_learns_and_selects_the_best_evaluation(finished):
  workdir, result = finished
  rows = [row for row in result.history if row["kind"] == "eval"]
  assert rows[-1]["loss"] < rows[0]["loss"]
  best = max(rows, key=lambda row: (row["accuracy"], row["step"]))
  assert result.best.step == best["step"]
  results = json.loads((workdir / "results.json").read_text())
  assert results["best"]["accuracy"] == best["accuracy"]
  assert {"python", "nam_jax", "jax", "flax", "numpy"} <= set(
    results["versions"]
  )
  config = json.loads((workdir / "config.json").read_text())
  assert config["batch_size"] == 16
  assert config["b2"] == 0.999


def test_tensorboard_events_are_written(finished):
  (events,) = (finished[0] / "summary").iterdir()
  content = events.read_bytes()
  assert content.count(b"train/loss") == 5
  assert content.count(b"eval/accuracy") == 4


def test_best_and_last_state_can_be_loaded(finished):
  workdir, result = finished
  config = toy.make_config(tensorboard=True)
  best = training.load(config, workdir, toy.init_fn).best
  assert int(best.step) == result.best.step
  last = training.load(config, workdir, toy.init_fn).state
  assert toy.digest(last) == toy.digest(result.state)


def test_finished_run_is_not_trained_again(finished, capsys):
  workdir, result = finished
  before = _files(workdir / "checkpoints")
  again = toy.run(workdir, toy.make_config(tensorboard=True))
  assert "continuing the run" in capsys.readouterr().out
  assert toy.digest(again.state) == toy.digest(result.state)
  assert again.history == result.history
  assert again.best.step == result.best.step
  assert _files(workdir / "checkpoints") == before


def test_another_config_is_refused_and_nothing_changes(finished):
  workdir, _ = finished
  before = _files(workdir)
  config = toy.make_config(learning_rate=0.01, num_steps=30)
  message = (
    "learning_rate is 0.05 there and 0.01 here; num_steps is 20 there and 30"
    " here; tensorboard is True there and False here; choose another workdir"
  )
  with pytest.raises(training.UserError, match=message):
    toy.run(workdir, config)
  with pytest.raises(training.UserError, match=message):
    training.load(config, workdir, toy.init_fn)
  assert _files(workdir) == before


def test_folder_with_unexplained_results_is_refused(tmp_path):
  (tmp_path / "results.json").write_text("{}")
  with pytest.raises(training.UserError, match=r"holds results\.json"):
    toy.run(tmp_path, toy.make_config())
  assert list(tmp_path.iterdir()) == [tmp_path / "results.json"]


def test_unwritable_workdir_is_one_line(tmp_path):
  (tmp_path / "file").write_text("")
  with pytest.raises(training.UserError, match="cannot write to workdir") as e:
    toy.run(tmp_path / "file" / "run", toy.make_config())
  assert "\n" not in str(e.value)
  if os.getuid() != 0:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(training.UserError, match="Permission denied"):
      toy.run(tmp_path / "closed", toy.make_config())


def test_batch_that_does_not_divide_is_refused(tmp_path, monkeypatch):
  monkeypatch.setattr(jax, "device_count", lambda: 3)
  message = "batch_size=16 must be a multiple of 3 devices"
  with pytest.raises(training.UserError, match=message) as error:
    toy.run(tmp_path / "run", toy.make_config())
  assert "\n" not in str(error.value)
  assert not (tmp_path / "run").exists()


def test_folder_without_a_run_cannot_be_tested(tmp_path):
  with pytest.raises(training.UserError, match="holds no run"):
    training.load(toy.make_config(), tmp_path, toy.init_fn)


def _fragile_loss(params, extra, batch, key):
  """Where `batch["scale"]` is 0 the loss is finite and its gradient is not."""
  (total, weight), aux = toy.loss_fn(params, extra, batch, key)
  size = jnp.square(params["out"]["kernel"]).sum() * batch["scale"].mean()
  return (total + jnp.sqrt(size), weight), aux


@pytest.mark.parametrize(
  ("field", "value", "message"),
  [
    ("inputs", np.nan, "loss is nan at step 7; last good checkpoint: step 5"),
    ("scale", 0, "grad_norm is nan at step 7; last good checkpoint: step 5"),
  ],
)
def test_non_finite_step_stops_the_run_and_is_not_saved(
  tmp_path, field, value, message
):
  config = toy.make_config(log_every=100)
  batch_fn = toy.make_batch_fn(config)

  def source(step):
    batch = batch_fn(step) | {"scale": np.ones(16, np.float32)}
    if step == 6:
      batch[field] = np.full_like(batch[field], value)
    return batch

  with pytest.raises(training.TrainingDiverged, match=message):
    toy.run(tmp_path, config, _fragile_loss, source)
  assert _steps(tmp_path) == [5]
  best = training.load(config, tmp_path, toy.init_fn).best
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(best))


@pytest.mark.parametrize(("every", "last"), [(1, "step 3 in"), (5, "none")])
def test_parameters_that_are_not_finite_are_not_saved(tmp_path, every, last):
  """The loss of step 4 is finite; what its update leaves is not."""
  config = toy.make_config(
    num_steps=5,
    optimizer="sgd",
    learning_rate=1e30,
    schedule="constant * piecewise",
    warmup_steps=0,
    boundaries=(3,),
    scales=(1e-32, 1e9),
    log_every=100,
    eval_every=4,
    checkpoint_every=every,
  )
  message = f"finite after step 4; last good checkpoint: {last}"
  with pytest.raises(training.TrainingDiverged, match=message) as error:
    _fit(config, tmp_path, [0.5])
  assert "\n" not in str(error.value)
  assert _steps(tmp_path) == ([2, 3] if every == 1 else [])


def test_a_checkpoint_that_is_not_finite_is_passed_over(
  tmp_path, monkeypatch, caplog
):
  """Older versions wrote such checkpoints."""
  config = toy.make_config(num_steps=4, checkpoint_every=2, eval_every=4)
  expected = _fit(config, tmp_path, [0.5]).state
  shutil.rmtree(tmp_path / "checkpoints" / "4")
  nans = jax.tree.map(lambda x: jnp.full_like(x, jnp.nan), expected.params)
  with (
    monkeypatch.context() as patch,
    checkpoint.Checkpoints(tmp_path, config) as saved,
  ):
    patch.setattr(checkpoint, "_is_finite", lambda state: True)
    memory = {"seconds": 1.0, "window": []}
    saved.save(4, expected.replace(params=nans), memory, 0.5)
  found = _fit(config, tmp_path, [0.5])
  assert toy.digest(found.state) == toy.digest(found.best)
  assert toy.digest(found.state) == toy.digest(expected)
  (notice,) = toy.notices(caplog)
  assert "4 is damaged (it is not finite) and was moved to" in notice
  assert "continuing from step 2" in notice


def test_newest_two_and_the_best_checkpoint_are_kept(tmp_path):
  config = toy.make_config(num_steps=12, eval_every=2, checkpoint_every=3)
  scores = [0.1, 0.5, 0.9, 0.9, 0.2, float("nan")]  # steps 2, 4, ... 12
  result = _fit(config, tmp_path, scores)
  assert result.best.step == 8  # the later one wins a tie
  assert _steps(tmp_path) == [8, 9, 12]
  best = training.load(config, tmp_path, toy.init_fn).best
  assert int(best.step) == 8
  rows = (tmp_path / "metrics.jsonl").read_text().splitlines()
  assert json.loads(rows[-1])["accuracy"] is None


def test_small_is_best_in_min_mode(tmp_path):
  config = toy.make_config(
    num_steps=4, eval_every=1, checkpoint_every=4, selection_mode="min"
  )
  scores = [3.0, 1.0, 2.0, 2.0]
  result = _fit(config, tmp_path, scores)
  assert result.best.step == 2
  assert _steps(tmp_path) == [2, 4]


def test_rows_sgd_parts_bfloat16_and_no_extra_variables_resume(tmp_path):
  config = toy.make_config(
    num_steps=4,
    optimizer="sgd",
    momentum=0.9,
    grad_clip=1.0,
    accumulate_steps=2,
    compute_dtype="bfloat16",
    selection_metric="progress",
  )

  def loss_fn(params, extra, batch, key):
    del key
    assert extra == {}
    logits = toy.logits_of(params, batch["inputs"])
    loss = training.masked_cross_entropy(logits, batch["labels"], batch["mask"])
    return loss, ({}, extra)

  first, second = (
    training.fit(
      config,
      tmp_path,
      lambda key: {"params": toy.init_fn(key)["params"]},
      loss_fn,
      toy.Rows(seed=0, count=40),
      lambda state: {"progress": float(state.step)},
    )
    for _ in range(2)
  )
  assert int(second.state.step) == 4
  assert toy.digest(first.state) == toy.digest(second.state)


def test_unknown_selection_metric_lists_the_known_ones(tmp_path):
  config = toy.make_config(selection_metric="f1")
  with pytest.raises(
    training.UserError, match="of the evaluation: accuracy, l"
  ):
    toy.run(tmp_path, config)


def test_missing_dashboard_is_reported_before_the_folder_is_made(tmp_path):
  with pytest.raises(training.UserError, match="pip install wandb"):
    toy.run(tmp_path / "run", toy.make_config(wandb="project"))
  assert not (tmp_path / "run").exists()


def test_wandb_receives_the_rows_and_keeps_its_run(tmp_path, monkeypatch):
  calls = []
  run = types.SimpleNamespace(
    log=lambda row, step: calls.append((step, row)), finish=lambda: None
  )
  starts = []
  fake = types.ModuleType("wandb")
  fake.__spec__ = types.SimpleNamespace(name="wandb")
  fake.init = lambda **settings: starts.append(settings) or run
  monkeypatch.setitem(sys.modules, "wandb", fake)
  config = toy.make_config(wandb="project", num_steps=2)
  for _ in range(2):
    toy.run(tmp_path, config)
  assert [(s, "train/loss" in r, "eval/loss" in r) for s, r in calls] == [
    (2, True, False),
    (2, False, True),
  ]
  assert starts[0]["project"] == "project"
  assert starts[0]["id"] == starts[1]["id"]


def _fit(config, workdir, scores):
  """A run whose evaluations return these accuracies."""
  rest = iter(scores)
  return training.fit(
    config,
    workdir,
    toy.init_fn,
    toy.loss_fn,
    toy.make_batch_fn(config),
    lambda state: {"accuracy": next(rest)},
  )
