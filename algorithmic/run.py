"""Trains a model on an algorithmic task and tests it on longer inputs.

The checkpoint that is best by the config's `selection_metric` is the one whose
results count: as in the paper, sequence accuracy on OD-easy; in the other
protocols, accuracy on lengths that were trained on.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from algorithmic import config as config_lib
from algorithmic import data, evaluate, pictures
from algorithmic.config import AlgorithmicConfig
from algorithmic.tasks import registry as tasks
from algorithmic.tasks.task import Batch, Task
from command_line import machine, script
from nam_jax import training
from nam_jax.models import registry as models
from nam_jax.training import fingerprint
from nam_jax.training.completion import Predict


class Experiment(NamedTuple):
  """The objects that a config describes."""

  config: AlgorithmicConfig
  workdir: Path
  task: Task
  model: nn.Module
  test_model: nn.Module  # the same parameters, with `test_kwargs`
  predict: Predict  # by the test model

  @property
  def protocol(self) -> data.Protocol:
    """What is trained and tested on."""
    return data.PROTOCOLS[self.config.protocol]

  def init_fn(self, key: jax.Array) -> dict[str, Any]:
    """The model's variables."""
    width = data.split_width(self.task, "train", self.protocol)
    inputs = jnp.zeros((1, width), jnp.int32)
    return self.model.init(key, inputs, inputs == 0)

  def test_set(self, name: str) -> Batch:
    """One of the sets to test on."""
    width = None
    if self.protocol.one_width:
      width = data.longest_width(self.task, self.protocol)
    return data.validation_set(self.task, name, width, self.protocol)


def main(argv: Sequence[str], usage: str = __doc__) -> None:
  """Trains and tests as the flags in argv say."""
  config, flags = config_lib.read(argv, usage)
  sweep = config_lib.lengths(flags.sweep)
  training.connect()
  experiment = make_experiment(config, flags.workdir)
  fitted = load(experiment) if flags.test_only else train(experiment)
  results = measure(experiment, fitted, sweep)
  training.write_results(experiment.workdir, results)
  if training.is_main():
    pictures.save(
      experiment.workdir,
      experiment.task,
      experiment.test_model,
      fitted.best,
      results,
    )
    print(show(results))
    again = () if sweep else ("--test_only", "--sweep=20,40,80")
    print(script.ending(experiment.workdir, argv, *again))


def make_experiment(config: AlgorithmicConfig, workdir: str) -> Experiment:
  """Builds task and model; raises `UserError` for a wrong setting."""
  with script.user_errors():
    task = tasks.make_task(config.task, **config.task_kwargs)
    test_model = _make_model(config, task, config.test_kwargs)
    _make_model(config, task, config.sweep_kwargs)  # used after training
    name = f"{config.task}-{config.model}"
    others = {"protocol": "paper", "preset": "cpu"}
    for field, default in others.items():
      if getattr(config, field) != default:
        name += f"-{getattr(config, field)}"
    experiment = Experiment(
      config,
      Path(workdir or f"runs/{name}"),
      task,
      _make_model(config, task, {}),
      test_model,
      training.make_predict(test_model, config),
    )
    # Wrong settings fail here, before anything is written.
    _max_digits(config, 0)
    variables = jax.eval_shape(experiment.init_fn, jax.random.key(0))
    longest = data.longest_width(task, experiment.protocol)
    inputs = jax.ShapeDtypeStruct((1, longest), jnp.int32)
    mask = jax.ShapeDtypeStruct((1, longest), jnp.bool)
    jax.eval_shape(test_model.apply, variables, inputs, mask)
  return experiment


def train(experiment: Experiment) -> training.FitResult:
  """Trains, or continues training, until `num_steps`."""

  def select(state):
    summary = _evaluate(experiment, state, experiment.protocol.during)
    return {
      f"{split}_{name}": value
      for split, accuracies in summary["splits"].items()
      for name, value in accuracies.items()
    }

  return training.fit(
    experiment.config,
    experiment.workdir,
    experiment.init_fn,
    training.make_loss_fn(experiment.model),
    make_batch_fn(experiment.config, experiment.task),
    select,
    _fingerprint(experiment),
  )


def load(experiment: Experiment) -> training.FitResult:
  """A run that `train` made earlier."""
  return training.load(
    experiment.config,
    experiment.workdir,
    experiment.init_fn,
    _fingerprint(experiment),
  )


def make_batch_fn(
  config: AlgorithmicConfig, task: Task
) -> Callable[[int], dict[str, np.ndarray]]:
  """step -> a batch of samples as long as the curriculum allows by then."""
  protocol = data.PROTOCOLS[config.protocol]

  @functools.lru_cache(maxsize=1)
  def samples(epoch):
    return _training_set(config, task, epoch)

  def batch_fn(step):
    epoch = step * config.batch_size // protocol.splits["train"].size
    longest = _max_digits(config, step)
    batch = data.training_batch(
      samples(epoch if protocol.fresh else 0),
      config.seed,
      step,
      config.batch_size,
      longest,
      config.trim,
    )
    return batch._asdict()

  return batch_fn


def measure(
  experiment: Experiment, fitted: training.FitResult, sweep: Iterable[int]
) -> dict[str, Any]:
  """The content of results.json; `sweep` adds further lengths."""
  config, state = experiment.config, fitted.best
  summary = _evaluate(experiment, state, experiment.protocol.tests)
  summary["by_length"] |= _sweep(experiment, state, sweep)
  epoch = experiment.protocol.splits["train"].size / config.batch_size
  return {
    "task": config.task,
    "model": config.model,
    "protocol": config.protocol,
    "preset": config.preset,
    "seed": config.seed,
    "parameters": training.parameter_count(state.params),
    "epochs": int(fitted.state.step) / epoch,
    "selected_epoch": int(state.step) / epoch,
    **summary,
    "wall_seconds": fitted.seconds,
    "machine": machine.about(),
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
    if int(digits) > data.PROTOCOLS[results["protocol"]].longest
  }
  for name, accuracy in (results["splits"] | far).items():
    lines.append(
      f"{name:10}{accuracy['sequence_accuracy']:10.2%}"
      f"{accuracy['token_accuracy']:10.2%}"
    )
  return "\n".join(lines)


def _make_model(config, task, changes):
  kwargs = {**config.model_kwargs, **changes}
  return models.make_model(config.model, task.vocab_size, **kwargs)


def _training_set(config, task, epoch=0):
  protocol, width = data.PROTOCOLS[config.protocol], None
  if config.wide_training:
    width = data.longest_width(task, protocol)
  return data.training_set(
    task, config.seed, width, protocol, epoch, shift=not config.trim
  )


def _fingerprint(experiment):
  splits = {"train": _training_set(experiment.config, experiment.task)}
  for name in experiment.protocol.tests:
    splits[name] = experiment.test_set(name)
  return fingerprint.make(splits)


def _max_digits(config, step):
  return data.max_digits(
    min(step / config.num_steps, 1.0),  # batches are prepared ahead of time
    config.curriculum_start,
    data.PROTOCOLS[config.protocol].splits["train"].high,
    config.curriculum_full_at,
  )


def _evaluate(experiment, state, splits):
  return evaluate.summary(
    {
      name: evaluate.evaluate(
        functools.partial(experiment.predict, state),
        experiment.test_set(name),
        experiment.config.eval_batch_size,
      )
      for name in splits
    }
  )


def _sweep(experiment, state, sweep):
  config, task = experiment.config, experiment.task
  model = _make_model(config, task, config.sweep_kwargs)
  predict = functools.partial(training.make_predict(model, config), state)
  results = {
    str(digits): evaluate.evaluate(
      predict, data.sweep_set(task, digits), config.eval_batch_size
    )
    for digits in sweep
  }
  return evaluate.summary(results)["by_length"]
