"""Trains a model on an algorithmic task and tests it on longer inputs.

As in the paper, the checkpoint with the best sequence accuracy on OD-easy is
the one whose results count.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from algorithmic import data, evaluate, lengths
from algorithmic.tasks import registry as tasks
from algorithmic.tasks.task import Task
from command_line import script
from nam_jax import training
from nam_jax.models import registry as models


@dataclasses.dataclass(frozen=True)
class AlgorithmicConfig(training.TrainConfig):
  """The engine's settings, and what is trained on what."""

  # A name of algorithmic/registry.py, and the task's fields.
  task: str = "palin"
  task_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # A name of nam_jax/models/registry.py, and its arguments.
  model: str = "nam_tm"
  model_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Arguments that differ when the model is tested: a longer tape.
  test_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Arguments that differ for lengths past the splits: a longer one still.
  sweep_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Where model_kwargs come from; for the records.
  preset: str = "cpu"
  # Most digits of a sample at the start of the run.
  curriculum_start: int = 10
  # Share of the run after which samples have up to 10 digits.
  curriculum_full_at: float = 2 / 3
  # Shift samples over all columns of the longest split: learned positions.
  wide_training: bool = False
  # Rows of a batch in evaluation.
  eval_batch_size: int = 256


class Experiment(NamedTuple):
  """A config with its folder and what it names."""

  config: AlgorithmicConfig
  workdir: Path
  task: Task
  model: nn.Module
  test_model: nn.Module  # the same parameters, with `test_kwargs`

  def init_fn(self, key: jax.Array) -> dict[str, Any]:
    """The model's variables."""
    width = data.longest_width(self.task)
    inputs = jnp.zeros((1, width), jnp.int32)
    return self.model.init(key, inputs, inputs == 0)


def make_experiment(config: AlgorithmicConfig, workdir: str) -> Experiment:
  """Builds task and model; what does not fit together is a `UserError`."""
  with script.user_errors():
    task = tasks.make_task(config.task, **config.task_kwargs)
    model = _make_model(config, task, {})
    test_model = _make_model(config, task, config.test_kwargs)
    name = f"{config.task}-{config.model}"
    if config.preset != "cpu":
      name += f"-{config.preset}"
    workdir = Path(workdir or f"runs/{name}")
    experiment = Experiment(config, workdir, task, model, test_model)
    # Wrong settings fail here, before anything is written.
    _most_digits(config, 0)
    jax.eval_shape(experiment.init_fn, jax.random.key(0))
  return experiment


def make_batch_fn(
  config: AlgorithmicConfig, task: Task
) -> Callable[[int], dict[str, np.ndarray]]:
  """step -> batch, of the training set and as long as the curriculum allows."""
  width = data.longest_width(task) if config.wide_training else None
  data = data.training_set(task, config.seed, width)

  def batch_fn(step):
    most = _most_digits(config, step)
    batch = data.training_batch(
      data, config.seed, step, config.batch_size, most
    )
    return batch._asdict()

  return batch_fn


def train(experiment: Experiment) -> None:
  """Trains, or goes on training, until `num_steps`."""
  config, workdir, task, model, test_model = experiment
  predict = training.make_predict(test_model, config)

  def selection(state):
    results = _evaluate(experiment, predict, state, ("id", "od_easy"))
    splits = evaluate.summary(results)["splits"]
    return {
      f"{split}_{name}": value
      for split, accuracies in splits.items()
      for name, value in accuracies.items()
    }

  training.fit(
    config,
    workdir,
    experiment.init_fn,
    training.make_loss_fn(model),
    make_batch_fn(config, task),
    selection,
  )


def load(experiment: Experiment) -> training.TrainState:
  """The state that was best on OD-easy."""
  return training.load_best(
    experiment.config, experiment.workdir, experiment.init_fn
  )


def measure(
  experiment: Experiment, state: training.TrainState, sweep: Sequence[int]
) -> dict[str, Any]:
  """What goes into results.json; `sweep` adds further lengths."""
  config = experiment.config
  predict = training.make_predict(experiment.test_model, config)
  splits = _evaluate(experiment, predict, state, data.VALIDATION_SPLITS)
  summary = evaluate.summary(splits)
  summary["by_length"] |= _sweep(experiment, state, sweep)
  epoch = data.SPLITS["train"].size / config.batch_size
  return {
    "task": config.task,
    "model": config.model,
    "preset": config.preset,
    "seed": config.seed,
    "parameters": training.parameter_count(state.params),
    "selected_epoch": int(state.step) / epoch,
    **summary,
    "wall_seconds": training.read_metrics(experiment.workdir)[-1]["seconds"],
  }


def show(results: dict[str, Any]) -> str:
  """The results as a few lines of text."""
  lines = [
    f"{results['task']} {results['model']} ({results['preset']}), epoch"
    f" {results['selected_epoch']:g}, {results['wall_seconds']:.0f} s",
    f"{'':10}{'sequences':>10}{'tokens':>10}",
  ]
  far = {
    f"{digits} digits": accuracy
    for digits, accuracy in results["by_length"].items()
    if int(digits) > data.SPLITS["od_hard"].high
  }
  for name, accuracy in (results["splits"] | far).items():
    lines.append(
      f"{name:10}{accuracy['sequence_accuracy']:10.2%}"
      f"{accuracy['token_accuracy']:10.2%}"
    )
  return "\n".join(lines)


def _make_model(config, task, changes):
  kwargs = {**config.model_kwargs, **changes}
  return models.make_model(config.model, task.vocab_size, kwargs)


def _most_digits(config, step):
  return lengths.max_digits(
    min(step / config.num_steps, 1.0),  # batches are made ahead of time
    config.curriculum_start,
    data.SPLITS["train"].high,
    config.curriculum_full_at,
  )


def _evaluate(experiment, predict, state, splits):
  width = data.longest_width(experiment.task)
  return {
    name: evaluate.evaluate(
      functools.partial(predict, state),
      data.validation_set(experiment.task, name, width),
      experiment.config.eval_batch_size,
    )
    for name in splits
  }


def _sweep(experiment, state, sweep):
  config, task = experiment.config, experiment.task
  model = _make_model(config, task, config.sweep_kwargs)
  predict = training.make_predict(model, config)
  results = {
    str(digits): evaluate.evaluate(
      functools.partial(predict, state),
      data.sweep_set(task, digits),
      config.eval_batch_size,
    )
    for digits in sweep
  }
  return evaluate.summary(results)["by_length"]
