"""Equal effort: times, numbers of updates, and schedules that fit them."""

from types import SimpleNamespace

import numpy as np
import pytest

from lra_tasks import effort
from lra_tasks.config import LRAConfig
from nam_jax import training


def test_updates_and_all_evaluations_fit_into_the_minutes():
  pace = effort.Pace(step_seconds=0.5, evaluation_seconds=3.0)
  assert pace.steps_within(1) == (60 - 10 * 3) / 0.5
  with pytest.raises(training.UserError, match="minutes are too short"):
    pace.steps_within(0.5)


def test_warm_up_and_cycles_keep_their_share_and_ten_evaluations_fit():
  config = LRAConfig(num_steps=600, warmup_steps=100, steps_per_cycle=600)
  assert effort.flags(config, 1206) == (
    "--config.num_steps=1206",
    "--config.warmup_steps=201",
    "--config.steps_per_cycle=1206",
    "--config.log_every=121",
    "--config.eval_every=121",
    "--config.checkpoint_every=121",
  )
  assert "--config.warmup_steps=1" in effort.flags(config, 2)


def test_no_evaluation_is_added_by_rounding():
  for steps in (1, 9, 10, 11, 99, 101, 1206):
    flags = effort.flags(LRAConfig(), steps)
    (every,) = (f for f in flags if f.startswith("--config.eval_every="))
    assert -(-steps // int(every.partition("=")[2])) <= effort.TIMES


def test_compilation_of_every_shape_is_left_out(monkeypatch):
  now = 0.0
  monkeypatch.setattr(effort, "time", SimpleNamespace(perf_counter=lambda: now))
  compiled, calls = set(), []

  def batches():
    nonlocal now
    for length in [2, 2, 8, 2, 2, 2]:
      now += 0.25
      yield {"inputs": np.zeros((1, length))}

  def call(batch):
    nonlocal now
    length = batch["inputs"].shape[1]
    now += length if length in compiled else 1000
    compiled.add(length)
    calls.append(length)

  assert effort.mean_seconds(call, batches(), 13) == 13.0 / 4 + 0.5
