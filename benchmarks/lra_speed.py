"""Training steps of several attentions, timed in turn in one process.

  python -m experiments.lra_speed
  python -m experiments.lra_speed --rows=text:4000 --attentions=softmax,nam

Every attention makes one step a round, and its fastest round counts, so that a
busy machine slows all of them alike. The network and the optimiser are those of
the config's preset "lra"; the tokens are random.
"""

import argparse
import functools
import importlib
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks import timing
from command_line import tables
from lra_tasks import run
from lra_tasks.task import Task
from nam_jax import training
from nam_jax.training import host_memory
from nam_jax.training import state as state_lib

# Ids and classes of the task of each config file.
SIZES = {
  "cifar10": (256, 10),
  "listops": (17, 10),
  "text": (257, 2),
  "matching": (257, 2),
  "pathfinder": (256, 2),
}
ROWS = ("cifar10:1024", "listops:2000", "text:1000", "text:4000")
ATTENTIONS = ("softmax", "linear", "nam", "nam_erase")


class Step(NamedTuple):
  """A compiled training step on one batch; running it changes `state`."""

  run: Any
  temporary_mib: float
  compile_seconds: float


def make_step(file: str, length: int, attention: str, batch_size: int) -> Step:
  """The training step of a config file, on random tokens."""
  module = importlib.import_module(f"configs.lra.{file}")
  fields = module.get_config(attention).to_dict()
  fields |= {"batch_size": batch_size, "task_kwargs": {}}
  config = training.from_config_dict(fields, run.LRAConfig)
  task = Task(config.task, *SIZES[file], length, file == "matching", *[()] * 3)
  model = run.make_model(config, task)
  experiment = run.Experiment(config, Path(), task, model)
  rng = np.random.default_rng(0)
  shape = (batch_size, *([2] if task.is_pair else []), length)
  batch = training.place(
    {
      "inputs": rng.integers(1, task.vocab_size, shape, np.int32),
      "mask": np.ones(shape, bool),
      "label": rng.integers(0, task.num_classes, batch_size, np.int32),
    }
  )
  optimizer = training.make_optimizer(config)
  state = state_lib.create(experiment.init_fn, optimizer, config.seed)
  loss_fn = training.classification.make_loss_fn(model)
  step = training.make_train_step(loss_fn, optimizer, config)
  start = time.perf_counter()
  compiled = step.lower(state, batch).compile()
  compile_seconds = time.perf_counter() - start
  temporary = compiled.memory_analysis().temp_size_in_bytes / 2**20
  states = [state]

  def run():
    states[0], _ = compiled(states[0], batch)
    jax.block_until_ready(states[0].params)

  return Step(run, temporary, compile_seconds)


def race(
  file: str,
  length: int,
  attentions: Sequence[str],
  batch_size: int,
  rounds: int,
) -> dict[str, dict[str, float]]:
  """attention -> seconds of its fastest step, MiB of temporary memory."""
  make = functools.partial(make_step, file, length, batch_size=batch_size)
  steps = {name: make(attention=name) for name in attentions}
  best = timing.race({name: steps[name].run for name in steps}, rounds)
  return {
    name: {"seconds": best[name], "temporary_mib": steps[name].temporary_mib}
    for name in steps
  }


def as_rows(results: dict[str, dict[str, dict[str, float]]]) -> list[list[str]]:
  """Rows of texts; ratios are to the first attention."""
  rows = [["task", "attention", "ms", "times as fast", "temporary MiB"]]
  for row, times in results.items():
    first = next(iter(times.values()))["seconds"]
    for name, measured in times.items():
      rows.append(
        [
          row,
          name,
          f"{1e3 * measured['seconds']:.0f}",
          f"{first / measured['seconds']:.2f}",
          f"{measured['temporary_mib']:.0f}",
        ]
      )
  return rows


def main(argv: Sequence[str]) -> None:
  """Measures and prints what argv asks for."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  add, names = parser.add_argument, lambda text: text.split(",")
  add("--rows", type=names, default=ROWS, help="config:length, ...")
  add("--attentions", type=names, default=ATTENTIONS)
  add("--batch_size", type=int, default=2)
  add("--rounds", type=int, default=5)
  add("--json", type=Path, help="file for the numbers")
  add("--markdown", action="store_true", help="print a Markdown table")
  options = parser.parse_args(argv)
  host_memory.keep_freed_memory()
  results = {}
  for row in options.rows:
    file, _, length = row.partition(":")
    results[row] = race(
      file, int(length), options.attentions, options.batch_size, options.rounds
    )
    print(f"{row} measured", file=sys.stderr, flush=True)
  print(tables.as_text(as_rows(results), options.markdown))
  if options.json:
    options.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
  main(sys.argv[1:])
