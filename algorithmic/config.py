"""The settings of a run, and how the command line sets them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from absl import flags

from algorithmic import data
from algorithmic.tasks import registry as tasks
from command_line import script
from nam_jax import spelling, training
from nam_jax.models import registry as models

DEFAULT = "configs/algorithmic/palin.py:nam_tm"
NAMES = {
  "tasks": tasks.TASKS,
  "models": models.CORES,
  "protocols": data.PROTOCOLS,
  "presets": ("cpu", "paper", "converged"),
}
_FLAGS = {"sweep": "further lengths to test, for instance 20,40,80"}


@dataclasses.dataclass(frozen=True)
class AlgorithmicConfig(training.TrainConfig):
  """The engine's settings, plus the task and the model."""

  # A name in algorithmic/tasks/registry.py, and the task's fields.
  task: str = "palin"
  task_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Which lengths to train and test on; a name in algorithmic/data.py.
  protocol: str = "paper"
  # A name in nam_jax/models/registry.py, and its fields.
  model: str = "nam_tm"
  model_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Fields that differ when the model is tested: a longer tape.
  test_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Fields that differ for lengths past the splits: a still longer one.
  sweep_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Where model_kwargs come from; for the records.
  preset: str = "cpu"
  # Most digits in a sample at the start of the run.
  curriculum_start: int = 10
  # Fraction of the run after which samples are as long as the protocol says.
  curriculum_full_at: float = 2 / 3
  # Shift samples over all columns of the longest split: learned positions.
  wide_training: bool = False
  # Rows of similar length share a batch, which is cut after its longest row, at
  # a multiple of so many columns; 0: all batches are as wide as the longest.
  trim: int = 0
  # Rows per evaluation batch.
  eval_batch_size: int = 256

  def __post_init__(self):
    super().__post_init__()
    if self.protocol not in data.PROTOCOLS:
      raise training.UserError(
        spelling.unknown("protocol", self.protocol, data.PROTOCOLS)
      )
    if self.trim < 0:
      raise training.UserError(f"trim={self.trim} must not be negative")
    if self.trim and self.wide_training:
      raise training.UserError(
        f"trim={self.trim} puts every sample into the first columns, where"
        " learned positions would only know them; it needs wide_training=False"
      )

  def upgraded(self, fields: dict[str, Any]) -> dict[str, Any]:
    """Adds what is new: runs of version 0.1 follow the paper.

    What they were tested with past the splits has changed since, and does not
    matter to the training.
    """
    fields = {"trim": 0, **super().upgraded(fields)}
    if "protocol" in fields:
      return fields
    return {**fields, "protocol": "paper", "sweep_kwargs": self.sweep_kwargs}


def read(
  argv: Sequence[str], usage: str
) -> tuple[AlgorithmicConfig, flags.FlagValues]:
  """The config that argv chooses, and the other flags."""
  values, fields = script.read(argv, usage, DEFAULT, NAMES, _FLAGS)
  return training.from_config_dict(fields, AlgorithmicConfig), values


def lengths(sweep: str) -> list[int]:
  """What --sweep asks for."""
  try:
    asked = [int(digits) for digits in sweep.split(",") if digits]
  except ValueError:
    asked = [0]
  if min(asked, default=1) < 1:
    raise training.UserError(
      f"--sweep={sweep} is no list of lengths; write --sweep=20,40,80"
    )
  return asked
