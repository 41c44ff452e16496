"""The settings of a run, and how the command line sets them."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from absl import flags

from command_line import script
from lra_tasks import registry as tasks
from lra_tasks import upstream
from nam_jax import spelling, training
from nam_jax.models import attentions as models

DEFAULT = "configs/lra/listops.py:nam"
NAMES = {
  "tasks": tasks.TASKS,
  "attentions": models.KINDS,
  "presets": ("cpu", "plain", "s5", "lra", "paper"),
}
_FLAGS = {
  "model_dir": "=workdir",
  "task_name": "instead of the config's task; the benchmark's names work too",
  "data_dir": "folder with the data; without it, listops generates its own,"
  " and text and image are read where TFDS keeps its data",
  "attention": "instead of the config's attention",
  "time_only": "do not train; time updates for so many seconds, time an"
  " evaluation, and write pace.json into --workdir",
}
# Perplexity is capped here, as in the benchmark.
_LARGEST_PERPLEXITY = 1e4


@dataclasses.dataclass(frozen=True)
class LRAConfig(training.TrainConfig):
  """The engine's settings, plus the task and the model."""

  # A name in lra_tasks/registry.py, and the task's settings.
  task: str = "listops"
  task_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # A name in nam_jax/models/attentions.py, and its options.
  attention: str = "nam"
  attention_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # The network's sizes and rates: fields of `Size`, in the same file.
  model_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Treat padding as the benchmark's own code does: id 0 (even black pixels) is
  # padding, means include padding, linear and nam attention see it.
  compat: bool = False
  # Rows of similar length share a batch, and a batch is cut after its longest
  # row, rounded up to a multiple of this; 0: all are max_length long.
  trim: int = 0
  # Rows per evaluation batch; 0: as in training.
  eval_batch_size: int = 0
  # Batches per evaluation in training, of rows drawn once; 0: all rows.
  num_eval_batches: int = 0
  selection_metric: str = "accuracy"
  selection_mode: Literal["min", "max"] = "max"

  def __post_init__(self):
    super().__post_init__()
    if self.trim < 0:
      raise training.UserError(f"trim={self.trim} must not be negative")
    if self.trim and self.compat:
      raise training.UserError(
        f"trim={self.trim} needs compat=False, so that padding has no effect"
      )
    sizes = self.model_kwargs
    if self.trim and (sizes.get("pool_norm") or sizes.get("norm") == "batch"):
      raise training.UserError(
        f"trim={self.trim} needs a network without batch norm (pool_norm,"
        " norm=batch): rows of similar length are no sample of all rows"
      )
    if self.trim and sizes.get("classifier_pool") == "FLATTEN":
      raise training.UserError(
        f"trim={self.trim} needs another classifier_pool than FLATTEN, which"
        " reads max_length tokens"
      )

  def tensorboard_scalars(
    self, kind: str, row: Mapping[str, float]
  ) -> dict[str, float]:
    """The benchmark's names, which differ for images."""
    is_image = self.task in ("image", "pathfinder")
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

  def resolved(self) -> "LRAConfig":
    """The config with the validation rows of text, which depend on compat."""
    if self.task != "text":
      return self
    settings = {"validation": "test" if self.compat else "held_out"}
    return dataclasses.replace(self, task_kwargs=settings | self.task_kwargs)

  def upgraded(self, fields: dict[str, Any]) -> dict[str, Any]:
    """Adds what is new; version 0.1 had the benchmark's names of tasks."""
    fields = super().upgraded(fields)
    task, settings = upstream.our_task(fields.get("task", ""))
    if task == "text":
      settings = {"validation": "test"} | settings
    return {
      "trim": 0,
      **fields,
      "task": task,
      "task_kwargs": settings | fields.get("task_kwargs", {}),
    }


def read(
  argv: Sequence[str], usage: str
) -> tuple[LRAConfig, list[str], flags.FlagValues]:
  """The config that argv chooses, notices for the user, and the other flags.

  The config file is one of ours, or one of the benchmark's, unchanged.
  """
  file = script.config_file(argv, DEFAULT)
  upstream.make_importable(file)
  values, fields = script.read(argv, usage, DEFAULT, NAMES, _FLAGS)
  if values.time_only and not _is_positive(values.time_only):
    raise training.UserError(
      f"--time_only={values.time_only} is not a number of seconds"
    )
  name, notices = values.task_name, []
  if name and name not in (known := {**tasks.TASKS, **upstream.OUR_NAMES}):
    raise training.UserError(spelling.unknown("task", name, known))
  if upstream.is_upstream(fields):
    name = upstream.task_of(file, name)
    upstream.check_task(file, fields, name)
    fields, notices = upstream.translate(fields, name)
  elif "task" not in fields:
    raise training.UserError(f"{file} sets no task; it may be a base config")
  task, settings = upstream.our_task(name or fields["task"])
  if task != upstream.our_task(fields["task"])[0] and fields.get("task_kwargs"):
    notices.append(f"--task_name drops {fields['task_kwargs']}")
    fields["task_kwargs"] = {}
  fields["task"] = task
  fields["task_kwargs"] = fields.get("task_kwargs", {}) | settings
  if values.attention and values.attention != fields["attention"]:
    fields["attention"] = values.attention
    if fields.get("attention_kwargs"):
      notices.append(f"--attention drops {fields['attention_kwargs']}")
    fields["attention_kwargs"] = {}
  return training.from_config_dict(fields, LRAConfig), notices, values


def perplexity(loss: float) -> float:
  """exp(loss), at most 10,000."""
  return min(math.exp(min(loss, 100.0)), _LARGEST_PERPLEXITY)


def _is_positive(text):
  try:
    return 0 < float(text) < math.inf
  except ValueError:
    return False
