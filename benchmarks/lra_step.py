"""One training step on the Long Range Arena, on random tokens."""

import importlib
import time
from typing import Any, NamedTuple

import jax
import numpy as np
import optax

from benchmarks.candidate import Candidate
from lra_tasks import run
from lra_tasks.task import Task
from nam_jax import training
from nam_jax.training import classification, device_memory
from nam_jax.training import state as state_lib

# Vocabulary size and number of classes for each config file.
SIZES = {
  "image": (256, 10),
  "listops": (17, 10),
  "text": (257, 2),
  "retrieval": (257, 2),
  "pathfinder": (256, 2),
}


class _Parts(NamedTuple):
  """What a step of a config is made of."""

  experiment: run.Experiment
  optimizer: optax.GradientTransformation
  step: jax.stages.Wrapped
  batch: dict[str, np.ndarray]


def make_step(
  file: str, length: int, attention: str, batch_size: int
) -> Candidate:
  """The step of a config file's preset "lra"; running it updates its state."""
  sizes = {"batch_size": batch_size, "accumulate_steps": 1}
  parts = _parts(file, length, attention, sizes)
  init_fn, seed = parts.experiment.init_fn, parts.experiment.config.seed
  state = state_lib.create(init_fn, parts.optimizer, seed)
  batch = training.place(parts.batch)
  start = time.perf_counter()
  compiled = parts.step.lower(state, batch).compile()
  compile_seconds = time.perf_counter() - start
  states = [state]

  def one_step():
    states[0], _ = compiled(states[0], batch)
    return jax.block_until_ready(states[0].params)

  temporary = compiled.memory_analysis().temp_size_in_bytes / 2**20
  return Candidate(one_step, compile_seconds, temporary)


def bytes_needed(file: str, length: int, attention: str) -> int | None:
  """Memory of the step of preset "lra", as it is; it is compiled, not run."""
  parts = _parts(file, length, attention, {})
  init_fn, seed = parts.experiment.init_fn, parts.experiment.config.seed
  state = state_lib.abstract(init_fn, parts.optimizer, seed)
  compiled = parts.step.lower(state, parts.batch).compile()
  return device_memory.bytes_needed(compiled)


def _parts(file, length, attention, sizes: dict[str, Any]):
  module = importlib.import_module(f"configs.lra.{file}")
  fields = module.get_config(f"{attention},lra").to_dict()
  fields |= {"task_kwargs": {}, **sizes}
  config = training.from_config_dict(fields, run.LRAConfig)
  task = Task(config.task, *SIZES[file], length, file == "retrieval", *[()] * 3)
  experiment = run.for_task(config, task)
  optimizer = training.make_optimizer(config)
  loss_fn = classification.make_loss_fn(experiment.model)
  step = training.make_train_step(loss_fn, optimizer, config)
  batch = _random_batch(task, config.batch_size)
  return _Parts(experiment, optimizer, step, batch)


def _random_batch(task, batch_size):
  rng = np.random.default_rng(0)
  pair = [2] if task.is_pair else []
  shape = (batch_size, *pair, task.max_length)
  return {
    "inputs": rng.integers(1, task.vocab_size, shape, np.int32),
    "mask": np.ones(shape, bool),
    "label": rng.integers(0, task.num_classes, batch_size, np.int32),
  }
