"""Trains a classifier on a task of the Long Range Arena and tests it.

As in the benchmark, what counts is the state after the last step; beside it
stands the one that was best on the validation rows.
"""

import dataclasses
import math
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from command_line import script
from data_files.errors import DataError
from lra_tasks import registry as tasks
from lra_tasks.task import Rows, Task
from nam_jax import training
from nam_jax.models import lra as models

# Perplexity is cut off here, as in the benchmark.
_LARGEST_PERPLEXITY = 1e4


@dataclasses.dataclass(frozen=True)
class LRAConfig(training.TrainConfig):
  """The engine's settings, and what is trained on what."""

  # A name of lra_tasks/registry.py, and the task's settings.
  task: str = "basic"
  task_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # A name of nam_jax/models/lra.py, and its options.
  attention: str = "nam"
  attention_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Sizes and rates of the network: fields of `Size` in nam_jax/models/lra.py.
  model_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Treat padding as the benchmark's own code does: id 0 (black pixels too) is
  # padding, means are over padding, linear and nam attention see it.
  compat: bool = False
  # Rows of a batch in evaluation; 0: as in training.
  eval_batch_size: int = 0
  # Batches of an evaluation during training, of rows drawn once; 0: all rows.
  num_eval_batches: int = 0
  selection_metric: str = "accuracy"
  selection_mode: Literal["min", "max"] = "max"

  def tensorboard_scalars(
    self, kind: str, row: Mapping[str, float]
  ) -> dict[str, float]:
    """The benchmark's names, which differ for images."""
    is_image = not self.task.startswith(("basic", "imdb", "aan"))
    prefix = "val" if is_image and kind == "eval" else kind
    scalars = {f"{prefix}_{name}": value for name, value in row.items()}
    pace = scalars.pop("train_steps_per_second", None)
    if pace is not None and is_image:
      scalars["examples_per_second"] = pace * self.batch_size
    elif pace is not None:
      scalars["steps_per_second"] = pace
    if "loss" in row and not is_image:
      scalars[f"{prefix}_perplexity"] = perplexity(row["loss"])
    return scalars


class Experiment(NamedTuple):
  """A config with its folder and what it names."""

  config: LRAConfig
  workdir: Path
  task: Task
  model: nn.Module

  def init_fn(self, key: jax.Array) -> dict[str, Any]:
    """The model's variables."""
    shape = (
      (2, self.task.max_length)
      if self.task.is_pair
      else (self.task.max_length,)
    )
    inputs = jnp.zeros((1, *shape), jnp.int32)
    return self.model.init(key, inputs, inputs == 0)


class _Sample:
  """Some of the rows."""

  def __init__(self, rows: Rows, indices: np.ndarray):
    self._rows, self._indices = rows, indices

  def __len__(self):
    return len(self._indices)

  def __getitem__(self, index):
    return self._rows[int(self._indices[index])]


def perplexity(loss: float) -> float:
  """exp(loss), at most 10,000."""
  return min(math.exp(min(loss, 100.0)), _LARGEST_PERPLEXITY)


def make_experiment(
  config: LRAConfig, workdir: str, data_dir: str
) -> Experiment:
  """Reads the data, builds the model; what does not fit is a `UserError`."""
  with script.user_errors():
    try:
      task = tasks.make_task(
        config.task, data_dir or None, **config.task_kwargs
      )
    except DataError as error:
      raise training.UserError(str(error)) from error
    experiment = Experiment(
      config,
      Path(workdir or f"runs/lra-{config.task}-{config.attention}"),
      task,
      make_model(config, task),
    )
    # Wrong settings fail here, before anything is written.
    jax.eval_shape(experiment.init_fn, jax.random.key(0))
  return experiment


def make_model(config: LRAConfig, task: Task) -> nn.Module:
  """The classifier of a config for the sizes of a task."""
  return models.make_classifier(
    config.attention,
    config.attention_kwargs,
    vocab_size=task.vocab_size,
    num_classes=task.num_classes,
    max_len=task.max_length,
    is_pair=task.is_pair,
    compat=config.compat,
    **config.model_kwargs,
  )


def train(experiment: Experiment) -> None:
  """Trains, or goes on training, until `num_steps`."""
  config, workdir, task, model = experiment
  eval_step = _make_eval_step(experiment)
  rows, size = task.validation, _eval_batch_size(config)
  if config.num_eval_batches:
    order = np.random.default_rng(config.seed).permutation(len(rows))
    rows = _Sample(rows, order[: config.num_eval_batches * size])
  training.fit(
    config,
    workdir,
    experiment.init_fn,
    training.classification.make_loss_fn(model),
    task.train,
    lambda state: _evaluate(eval_step, state, rows, size),
  )


def measure(experiment: Experiment) -> dict[str, Any]:
  """Tests the last and the best state: what goes into results.json."""
  config, workdir, task, _ = experiment
  eval_step, size = _make_eval_step(experiment), _eval_batch_size(config)
  states = {
    "last": training.load_newest(config, workdir, experiment.init_fn),
    "best": training.load_best(config, workdir, experiment.init_fn),
  }
  tested, by_step = {}, {}
  for name, state in states.items():
    step = int(state.step)
    if step not in by_step:
      metrics = _evaluate(eval_step, state, task.test, size)
      metrics["perplexity"] = perplexity(metrics["loss"])
      by_step[step] = {"step": step, **metrics}
    tested[name] = by_step[step]
  rows = training.read_metrics(workdir)
  pace = [r["steps_per_second"] for r in rows if r.get("steps_per_second")]
  wait = [r["input_wait"] for r in rows if r.get("input_wait") is not None]
  names = ("accuracy", "loss", "perplexity")
  return {
    **{name: tested["last"][name] for name in names},
    "task": config.task,
    "attention": config.attention,
    "compat": config.compat,
    "seed": config.seed,
    "parameters": training.parameter_count(states["last"].params),
    **tested,
    "steps_per_second": statistics.median(pace) if pace else None,
    "input_wait": statistics.median(wait) if wait else None,
    "wall_seconds": rows[-1]["seconds"],
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


def _eval_batch_size(config):
  return config.eval_batch_size or config.batch_size


def _make_eval_step(experiment):
  metric_fn = training.classification.make_metric_fn(experiment.model)
  return training.make_eval_step(metric_fn, experiment.config)


def _evaluate(eval_step, state, rows, size):
  batches = map(training.place, training.eval_batches(rows, size))
  return training.mean_metrics(eval_step, state, batches)
