"""Trains a classifier on a task of the Long Range Arena and tests it.

As in the benchmark, the state after the last step counts; the one that was best
on the validation rows is reported too.
"""

import dataclasses
import math
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from command_line import machine, script
from data_files import files_read
from lra_tasks import config as config_lib
from lra_tasks import effort, trimming
from lra_tasks import registry as tasks
from lra_tasks.config import LRAConfig
from lra_tasks.rows import SomeRows
from lra_tasks.task import Task
from nam_jax import training
from nam_jax.models import attentions as models
from nam_jax.models import options
from nam_jax.training import (
  classification,
  device_memory,
  fingerprint,
  run_dir,
  whole_files,
)
from nam_jax.training import state as state_lib
from nam_jax.training.fingerprint import Fingerprint
from nam_jax.training.step import EvalStep


class Experiment(NamedTuple):
  """The objects that a config describes."""

  config: LRAConfig
  workdir: Path
  task: Task
  model: nn.Module
  eval_step: EvalStep
  fingerprint: Fingerprint | None = None

  def init_fn(self, key: jax.Array) -> dict[str, Any]:
    """The model's variables."""
    pair = (2,) if self.task.is_pair else ()
    inputs = jnp.zeros((1, *pair, self.task.max_length), jnp.int32)
    return self.model.init(key, inputs, inputs == 0)


def main(argv: Sequence[str], usage: str = __doc__) -> None:
  """Trains and tests as the flags in argv say."""
  config, notices, flags = config_lib.read(argv, usage)
  training.connect()
  experiment = make_experiment(config, flags.workdir, flags.data_dir)
  if training.is_main():
    for notice in notices:
      print(f"notice: {notice}")
  if flags.time_only:
    pace = measure_pace(experiment, float(flags.time_only))
    experiment.workdir.mkdir(parents=True, exist_ok=True)
    whole_files.write_json(experiment.workdir / "pace.json", pace._asdict())
    return
  fitted = load(experiment) if flags.test_only else train(experiment)
  peak = None if flags.test_only else machine.peak_memory()
  results = measure(experiment, fitted) | {"peak_memory_bytes": peak}
  training.write_results(experiment.workdir, results)
  if training.is_main():
    print(show(results))
    print(script.ending(experiment.workdir, argv))


def make_experiment(
  config: LRAConfig, workdir: str, data_dir: str
) -> Experiment:
  """Reads data, builds the model; raises `UserError` for a wrong setting."""
  config = config.resolved()
  with script.user_errors():
    with files_read.recorded() as files:
      task = tasks.make_task(
        config.task, data_dir or None, **config.task_kwargs
      )
    experiment = for_task(config, task, workdir)
    # Wrong settings fail here, before anything is written.
    jax.eval_shape(experiment.init_fn, jax.random.key(0))
  return experiment._replace(fingerprint=_fingerprint(task, files))


def for_task(config: LRAConfig, task: Task, workdir: str = "") -> Experiment:
  """Builds the model for a task's sizes; the task's rows may be missing."""
  sizes = {*options.arguments(models.Size)} - {"max_len", "compat"}
  options.check(
    "config key", config.model_kwargs, sorted(sizes), "model_kwargs."
  )
  model = models.make_classifier(
    config.attention,
    config.attention_kwargs,
    vocab_size=task.vocab_size,
    num_classes=task.num_classes,
    max_len=task.max_length,
    is_pair=task.is_pair,
    compat=config.compat,
    **config.model_kwargs,
  )
  metric_fn = classification.make_metric_fn(model)
  return Experiment(
    config,
    Path(workdir or f"runs/lra-{config.task}-{config.attention}"),
    task,
    model,
    training.make_eval_step(metric_fn, config),
  )


def train(experiment: Experiment) -> training.FitResult:
  """Trains, or continues training, until `num_steps`."""
  rows = _validation_rows(experiment)
  return training.fit(
    experiment.config,
    experiment.workdir,
    experiment.init_fn,
    classification.make_loss_fn(experiment.model),
    _training_data(experiment),
    lambda state: _evaluate(experiment, state, rows),
    experiment.fingerprint,
  )


def measure_pace(experiment: Experiment, seconds: float) -> effort.Pace:
  """Times updates for so many seconds, and one evaluation in training."""
  config = experiment.config
  optimizer = training.make_optimizer(config)
  loss_fn = classification.make_loss_fn(experiment.model)
  train_step = device_memory.checked(
    training.make_train_step(loss_fn, optimizer, config), config
  )
  state = state_lib.create(experiment.init_fn, optimizer, config.seed)

  def update(batch):
    nonlocal state
    state, metrics = train_step(state, training.place(batch))
    jax.block_until_ready(metrics)

  def evaluate(batch):
    jax.block_until_ready(experiment.eval_step(state, training.place(batch)))

  batches = training.train_batches(
    _training_data(experiment), config.batch_size, config.seed, start_step=0
  )
  step_seconds = effort.mean_seconds(update, batches, seconds)
  rows = _validation_rows(experiment)
  batches = _eval_batches(experiment, rows)
  batch_seconds = effort.mean_seconds(evaluate, batches, math.inf)
  count = -(-len(rows) // _eval_batch_size(experiment))
  return effort.Pace(step_seconds, count * batch_seconds)


def load(experiment: Experiment) -> training.FitResult:
  """A run that `train` made earlier, whichever rows validated it."""
  config, data = experiment.config, experiment.fingerprint
  saved = run_dir.read_config(experiment.workdir, config)["task_kwargs"]
  if "validation" in config.task_kwargs and "validation" in saved:
    settings = config.task_kwargs | {"validation": saved["validation"]}
    if settings != config.task_kwargs:  # which other rows were trained on
      data = fingerprint.only(data, ["test"])
    config = dataclasses.replace(config, task_kwargs=settings)
  return training.load(config, experiment.workdir, experiment.init_fn, data)


def measure(
  experiment: Experiment, fitted: training.FitResult
) -> dict[str, Any]:
  """Tests the last and the best state: the content of results.json."""
  config, task = experiment.config, experiment.task
  last = _tested(experiment, fitted.state)
  is_last = int(fitted.best.step) == last["step"]
  best = last if is_last else _tested(experiment, fitted.best)
  return {
    **{name: last[name] for name in ("accuracy", "loss", "perplexity")},
    "task": config.task,
    "attention": config.attention,
    "compat": config.compat,
    "seed": config.seed,
    "parameters": training.parameter_count(fitted.state.params),
    "last": last,
    "best": best,
    "validation_accuracy": _validated(fitted.history, best["step"]),
    "validation_is_test": task.validation is task.test,
    "steps_per_second": _median(fitted.history, "steps_per_second"),
    "input_wait": _median(fitted.history, "input_wait"),
    "wall_seconds": fitted.seconds,
    "machine": machine.about(),
  }


def show(results: dict[str, Any]) -> str:
  """The results as a few lines of text."""
  lines = [
    f"{results['task']} {results['attention']},"
    f" {results['parameters']:,} parameters, {results['wall_seconds']:.0f} s",
    f"{'test':8}{'step':>8}{'accuracy':>10}{'loss':>8}",
  ]
  for name in ("last", "best"):
    tested = results[name]
    lines.append(
      f"{name:8}{tested['step']:8}{tested['accuracy']:10.2%}"
      f"{tested['loss']:8.4f}"
    )
  return "\n".join(lines)


def _fingerprint(task, files):
  splits = {
    name: getattr(task, name).content
    for name in ("train", "validation", "test")
  }
  return fingerprint.make(splits, files_read.named(files))


def _training_data(experiment):
  config, rows = experiment.config, experiment.task.train
  if not config.trim:
    return rows
  return trimming.batch_fn(
    rows,
    experiment.task.max_length,
    config.batch_size,
    config.seed,
    config.trim,
  )


def _validation_rows(experiment):
  """The rows that are evaluated in training: all, or a sample."""
  config, rows = experiment.config, experiment.task.validation
  if not config.num_eval_batches:
    return rows
  order = np.random.default_rng(config.seed).permutation(len(rows))
  size = config.num_eval_batches * _eval_batch_size(experiment)
  return SomeRows(rows, order[:size])


def _eval_batch_size(experiment):
  return experiment.config.eval_batch_size or experiment.config.batch_size


def _eval_batches(experiment, rows):
  config, size = experiment.config, _eval_batch_size(experiment)
  if not config.trim:
    return training.eval_batches(rows, size)
  max_length = experiment.task.max_length
  return trimming.eval_batches(rows, max_length, size, config.trim)


def _evaluate(experiment, state, rows):
  batches = map(training.place, _eval_batches(experiment, rows))
  return training.mean_metrics(experiment.eval_step, state, batches)


def _tested(experiment, state):
  metrics = _evaluate(experiment, state, experiment.task.test)
  perplexity = config_lib.perplexity(metrics["loss"])
  return {"step": int(state.step), **metrics, "perplexity": perplexity}


def _validated(history, step):
  """The accuracy of the evaluation in training after this step."""
  rows = (r for r in history if r["kind"] == "eval" and r["step"] == step)
  return next((row.get("accuracy") for row in rows), None)


def _median(history, name):
  """The median over the rows that have it."""
  values = [row[name] for row in history if row.get(name) is not None]
  return statistics.median(values) if values else None
