"""A step that does not fit is refused before it runs."""

import json
import types

import jax
import numpy as np
import pytest

from nam_jax import training
from nam_jax.training import device_memory
from nam_jax.training import state as state_lib
from tests.training import toy

GIB = 2**30


@pytest.mark.parametrize(
  ("needed", "settings", "advice"),
  [
    (31.3, {}, "try accumulate_steps=2, a smaller batch_size, or an attention"),
    (100, {}, "try accumulate_steps=6, a smaller batch_size"),
    (25, {"accumulate_steps": 4}, "try accumulate_steps=6, a smaller"),
    (1000, {}, "try a smaller batch_size, or an attention whose memory grows"),
  ],
)
def test_the_message_says_what_to_do(needed, settings, advice):
  config = training.TrainConfig(batch_size=24, **settings)
  with pytest.raises(training.UserError) as error:
    device_memory.check(int(needed * GIB), 24 * GIB, config)
  message = f"a training step needs {needed:.1f} GiB, but the device has 24.0"
  assert str(error.value).startswith(message)
  assert advice in str(error.value)
  assert "\n" not in str(error.value)


@pytest.mark.parametrize(
  ("needed", "available"), [(24 * GIB, 24 * GIB), (None, GIB), (GIB, None)]
)
def test_what_fits_or_is_unknown_runs(needed, available):
  device_memory.check(needed, available, training.TrainConfig())


def test_a_run_that_does_not_fit_makes_no_step(tmp_path, monkeypatch):
  monkeypatch.setattr(device_memory, "bytes_available", lambda: 2000)
  with pytest.raises(training.UserError, match=r"needs 0\.0 GiB"):
    toy.run(tmp_path, toy.make_config())
  assert not list((tmp_path / "checkpoints").iterdir())


def test_after_that_the_folder_takes_other_settings(tmp_path, monkeypatch):
  with monkeypatch.context() as small:
    small.setattr(device_memory, "bytes_available", lambda: 2000)
    with pytest.raises(training.UserError, match=r"needs 0\.0 GiB"):
      toy.run(tmp_path, toy.make_config())
  result = toy.run(tmp_path, toy.make_config(accumulate_steps=2))
  assert int(result.state.step) == 20
  config = json.loads((tmp_path / "config.json").read_text())
  assert config["accumulate_steps"] == 2


def test_every_shape_is_compiled_and_checked_once(monkeypatch):
  checks, programs = [], []
  monkeypatch.setattr(device_memory, "check", lambda *args: checks.append(args))
  jax.monitoring.register_event_duration_secs_listener(
    lambda name, _, **__: programs.append(name)
  )
  config = toy.make_config(batch_size=4)
  optimizer = training.make_optimizer(config)
  state = state_lib.create(toy.init_fn, optimizer, config.seed)
  step = training.make_train_step(toy.loss_fn, optimizer, config)
  step = device_memory.checked(step, config)
  batches = {
    rows: training.place(toy.make_rows(np.random.default_rng(0), rows))
    for rows in (4, 8)
  }
  programs.clear()
  for rows in (4, 8, 4, 8):
    state, _ = step(state, batches[rows])
  assert int(state.step) == 4
  compilations = [n for n in programs if "backend_compile" in n]
  jax.monitoring.clear_event_listeners()
  assert len(checks) == len(compilations) == 2
  needed, available, _ = checks[0]
  assert 2000 < needed < 100_000
  assert available > GIB


def fake_device(monkeypatch, platform, stats, count=1):
  device = types.SimpleNamespace(platform=platform, memory_stats=lambda: stats)
  monkeypatch.setattr(jax, "local_devices", lambda: [device] * count)


@pytest.mark.parametrize(
  ("stats", "expected"), [({"bytes_limit": 7}, 7), ({}, None), (None, None)]
)
def test_an_accelerator_says_how_much_it_has(monkeypatch, stats, expected):
  fake_device(monkeypatch, "gpu", stats)
  assert device_memory.bytes_available() == expected


def test_devices_of_a_cpu_share_what_a_container_may_use(tmp_path, monkeypatch):
  limit, none = tmp_path / "limit", tmp_path / "none"
  limit.write_text("1000\n")
  none.write_text("max\n")
  fake_device(monkeypatch, "cpu", None, count=2)
  paths = [str(p) for p in (none, limit, tmp_path / "absent")]
  monkeypatch.setattr(device_memory, "_CGROUP_LIMITS", paths)
  assert device_memory.bytes_available() == 500
  monkeypatch.setattr(device_memory, "_CGROUP_LIMITS", ())
  monkeypatch.delattr("os.sysconf")
  assert device_memory.bytes_available() is None
