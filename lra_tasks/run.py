"""Trains a classifier on a task of the Long Range Arena and tests it.

As in the benchmark, the state after the last step counts; the one that was best
on the validation rows is reported too.
"""

import dataclasses
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from command_line import script
from lra_tasks import config as config_lib
from lra_tasks import registry as tasks
from lra_tasks import trimming
from lra_tasks.config import LRAConfig
from lra_tasks.rows import SomeRows
from lra_tasks.task import Task
from nam_jax import training
from nam_jax.models import attentions as models
from nam_jax.training import classification, run_dir
from nam_jax.training.step import EvalStep


class Experiment(NamedTuple):
  """The objects that a config describes."""

  config: LRAConfig
  workdir: Path
  task: Task
  model: nn.Module
  eval_step: EvalStep

  def init_fn(self, key: jax.Array) -> dict[str, Any]:
    """The model's variables."""
    pair = (2,) if self.task.is_pair else ()
    inputs = jnp.zeros((1, *pair, self.task.max_length), jnp.int32)
    return self.model.init(key, inputs, inputs == 0)


def main(argv: Sequence[str], usage: str = __doc__) -> None:
  """Trains and tests as the flags in argv say."""
  config, notices, flags = config_lib.read(argv, usage)
  training.connect()
  if training.is_main():
    for notice in notices:
      print(f"notice: {notice}")
  experiment = make_experiment(config, flags.workdir, flags.data_dir)
  fitted = load(experiment) if flags.test_only else train(experiment)
  results = measure(experiment, fitted)
  training.write_results(experiment.workdir, results)
  if training.is_main():
    print(show(results))


def make_experiment(
  config: LRAConfig, workdir: str, data_dir: str
) -> Experiment:
  """Reads data, builds the model; raises `UserError` for a wrong setting."""
  config = config.resolved()
  with script.user_errors():
    task = tasks.make_task(config.task, data_dir or None, **config.task_kwargs)
    experiment = for_task(config, task, workdir)
    # Wrong settings fail here, before anything is written.
    jax.eval_shape(experiment.init_fn, jax.random.key(0))
  return experiment


def for_task(config: LRAConfig, task: Task, workdir: str = "") -> Experiment:
  """Builds the model for a task's sizes; the task's rows may be missing."""
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
  config, source = experiment.config, experiment.task.train
  rows = experiment.task.validation
  if config.num_eval_batches:
    order = np.random.default_rng(config.seed).permutation(len(rows))
    size = config.eval_batch_size or config.batch_size
    rows = SomeRows(rows, order[: config.num_eval_batches * size])
  if config.trim:
    source = trimming.batch_fn(
      source,
      experiment.task.max_length,
      config.batch_size,
      config.seed,
      config.trim,
    )
  return training.fit(
    config,
    experiment.workdir,
    experiment.init_fn,
    classification.make_loss_fn(experiment.model),
    source,
    lambda state: _evaluate(experiment, state, rows),
  )


def load(experiment: Experiment) -> training.FitResult:
  """A run that `train` made earlier, whichever rows validated it."""
  config = experiment.config
  saved = run_dir.read_config(experiment.workdir, config)["task_kwargs"]
  if "validation" in config.task_kwargs and "validation" in saved:
    settings = config.task_kwargs | {"validation": saved["validation"]}
    config = dataclasses.replace(config, task_kwargs=settings)
  return training.load(config, experiment.workdir, experiment.init_fn)


def measure(
  experiment: Experiment, fitted: training.FitResult
) -> dict[str, Any]:
  """Tests the last and the best state: the content of results.json."""
  config = experiment.config
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
    "steps_per_second": _median(fitted.history, "steps_per_second"),
    "input_wait": _median(fitted.history, "input_wait"),
    "wall_seconds": fitted.seconds,
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


def _evaluate(experiment, state, rows):
  config = experiment.config
  size = config.eval_batch_size or config.batch_size
  if config.trim:
    max_length = experiment.task.max_length
    batches = trimming.eval_batches(rows, max_length, size, config.trim)
  else:
    batches = training.eval_batches(rows, size)
  batches = map(training.place, batches)
  return training.mean_metrics(experiment.eval_step, state, batches)


def _tested(experiment, state):
  metrics = _evaluate(experiment, state, experiment.task.test)
  perplexity = config_lib.perplexity(metrics["loss"])
  return {"step": int(state.step), **metrics, "perplexity": perplexity}


def _median(history, name):
  """The median over the rows that have it."""
  values = [row[name] for row in history if row.get(name) is not None]
  return statistics.median(values) if values else None
