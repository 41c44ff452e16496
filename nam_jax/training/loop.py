"""The training loop: batch, step, log, evaluate, checkpoint."""

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from nam_jax.training import (
  checkpoint,
  data,
  device_memory,
  devices,
  full_disk,
  metrics_log,
  patience,
  run_dir,
  schedules,
  stopping,
)
from nam_jax.training import state as state_lib
from nam_jax.training import step as step_lib
from nam_jax.training.config import TrainConfig
from nam_jax.training.errors import TrainingDiverged, UserError
from nam_jax.training.fingerprint import Fingerprint
from nam_jax.training.state import TrainState

Evaluate = Callable[[TrainState], Mapping[str, float]]


class FitResult(NamedTuple):
  """A finished run, from `fit` or, later, from `load`."""

  state: TrainState  # after the last step
  best: TrainState  # best by the selection metric
  history: list[dict[str, Any]]  # the rows of metrics.jsonl
  seconds: float  # duration of the run until its last row, over all restarts


def fit(
  config: TrainConfig,
  workdir: str | os.PathLike,
  init_fn: state_lib.InitFn,
  loss_fn: step_lib.LossFn,
  source: data.Source,
  evaluate: Evaluate,
  fingerprint: Fingerprint | None = None,
) -> FitResult:
  """Trains for `config.num_steps` updates, or continues where a run stopped.

  With `config.patience`, a run that no longer gets better ends before.

  On SIGTERM or SIGINT after the first step, the current one is finished, the
  state saved, and the process exits with status 143 or 130. The same call then
  continues, with the results of an uninterrupted run, bit by bit if the machine
  has as many cores and the packages the same versions. A wrong setting, data or
  folder raises `UserError` before anything is changed, and so do a step that
  does not fit into memory, before it runs, and a full disk; a loss, or
  parameters to save, that are not finite raise `TrainingDiverged`.

  Args:
    config: a `TrainConfig` or a subclass; all of it is saved in config.json.
    workdir: a folder for this run alone.
    init_fn: key -> variables; see `state.create`.
    loss_fn: see `step`.
    source: the training data; see `data`.
    evaluate: state -> metrics by name, `selection_metric` among them.
    fingerprint: of the data, from `fingerprint.make`; the run only continues
      with the same. None compares nothing.
  """
  devices.check_batch_size(config.batch_size, config.accumulate_steps)
  metrics_log.check_installed(config)
  optimizer = schedules.make_optimizer(config)
  shapes = state_lib.abstract(init_fn, optimizer, config.seed)
  train_step = device_memory.checked(
    step_lib.make_train_step(loss_fn, optimizer, config), config
  )
  with (
    full_disk.explained(workdir),
    run_dir.claimed(workdir, config, fingerprint),
    stopping.StopRequest() as stop,
    checkpoint.Checkpoints(workdir, config) as saved,
    _naming_last_good(saved, workdir),
  ):
    state, memory = saved.restore_newest(shapes)
    if state is None:
      state = state_lib.create(init_fn, optimizer, config.seed)
    start = int(state.step)
    _announce(shapes, start, workdir)
    batches = data.train_batches(source, config.batch_size, config.seed, start)
    with metrics_log.MetricsLog(workdir, config, start, memory) as log:
      is_over = patience.is_over(config, log.history)
      for step in range(start + 1, config.num_steps + 1):
        if is_over:
          break
        batch = log.clock.await_next(batches)
        state, metrics = train_step(state, devices.place(batch))
        log.add(step, metrics)
        if _due(step, config.log_every, config):
          log.train(step)
        with log.clock.pause():
          selection = None
          if _due(step, config.eval_every, config):
            log.check_finite()
            selection = _evaluated(evaluate, state, step, log, config)
            is_over = patience.is_over(config, log.history)
          signal = stop.received(step)
          save = _due(step, config.checkpoint_every, config)
          if save or signal or is_over or saved.is_best(selection):
            saved.save(step, state, log.memory(), selection)
          if signal:
            _leave(signal, step, workdir)
    best = state
    best_step = saved.best_step
    if best_step is not None and best_step != int(state.step):
      best = saved.restore(best_step, shapes)
    return FitResult(state, best, log.history, _seconds(log.history, memory))


def load(
  config: TrainConfig,
  workdir: str | os.PathLike,
  init_fn: state_lib.InitFn,
  fingerprint: Fingerprint | None = None,
) -> FitResult:
  """The run in `workdir`, finished or not; the folder is only read.

  It must have this config and, if it is passed, this fingerprint of the data.
  """
  run_dir.check_same(workdir, config, fingerprint)
  run_dir.note_missing(workdir, fingerprint)
  optimizer = schedules.make_optimizer(config)
  shapes = state_lib.abstract(init_fn, optimizer, config.seed)
  newest, best, memory = checkpoint.restore(workdir, shapes)
  history = metrics_log.read_metrics(workdir)
  return FitResult(newest, best, history, _seconds(history, memory))


def _seconds(history, memory):
  return (history[-1] if history else memory)["seconds"]


def _due(step, every, config):
  return step % every == 0 or step == config.num_steps


def _evaluated(evaluate, state, step, log, config):
  """Runs and logs an evaluation; returns its selection metric."""
  metrics = evaluate(state)
  needed = {"selection_metric": config.selection_metric}
  if config.patience:
    needed["patience_metric"] = patience.watched(config)
  for field, name in needed.items():
    if name not in metrics:
      raise UserError(
        f"{field}={name!r} is not one of the metrics of the evaluation:"
        f" {', '.join(metrics)}"
      )
  log.evaluation(step, metrics)
  return metrics[config.selection_metric]


def _announce(shapes, start, workdir):
  if devices.is_main():
    print(state_lib.parameter_table(shapes.params))
    if start:
      print(f"continuing the run in {workdir} after step {start}", flush=True)


def _leave(signal, step, workdir):
  if devices.is_main():
    print(
      f"stopped by {signal.name} after step {step}, saved in {workdir};"
      " run the same command to continue",
      flush=True,
    )
  raise SystemExit(128 + signal)


@contextlib.contextmanager
def _naming_last_good(saved, workdir):
  try:
    yield
  except TrainingDiverged as error:
    where = f"step {saved.newest_step} in {workdir}"
    if saved.newest_step is None:
      where = "none"
    raise TrainingDiverged(f"{error}; last good checkpoint: {where}") from error
