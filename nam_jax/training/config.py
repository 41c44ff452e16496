"""What a training run needs to know: one frozen dataclass, checked on entry.

A script adds its own fields by inheritance, so that its ConfigDict is flat:

  @dataclasses.dataclass(frozen=True)
  class AdditionConfig(TrainConfig):
    task: str = "addition"
    model_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)

  config = from_config_dict(flags.FLAGS.config, AdditionConfig)

Every key of the ConfigDict becomes a field or is an error; nothing is dropped.
"""

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeVar

import ml_collections

from nam_jax import spelling
from nam_jax.training.errors import UserError

T = TypeVar("T")

# The key of config.json that is no setting; see `fingerprint`.
FINGERPRINT = "fingerprint"


@dataclasses.dataclass(frozen=True)
class TrainConfig:
  """Settings of the training engine; 0, "" or () switches a feature off."""

  # Source of every random choice: parameters, data order, dropout.
  seed: int = 0
  # Optimiser updates in the whole run.
  num_steps: int = 1000
  # Rows per update, summed over all devices and processes.
  batch_size: int = 64
  # "adam", "adamw" (decoupled weight decay) or "sgd".
  optimizer: Literal["adam", "adamw", "sgd"] = "adam"
  # Peak or constant learning rate: the factor "constant" of the schedule.
  learning_rate: float = 1e-3
  # "constant", "warmup_cosine", "exponential", or factors "a * b * c".
  schedule: str = "constant"
  # Updates of linear warm-up; also the scale of the rsqrt factors.
  warmup_steps: int = 0
  # Multiplier of the learning rate at each decay of "decay_every".
  decay_factor: float = 0.5
  # Updates between two decays of "decay_every"; one epoch, for example.
  steps_per_decay: int = 0
  # Updates in one cosine period; 0: all updates after the warm-up.
  steps_per_cycle: int = 0
  # First updates of the second, third, ... piece of "piecewise".
  boundaries: tuple[int, ...] = ()
  # Multipliers of the pieces of "piecewise": one more than boundaries.
  scales: tuple[float, ...] = ()
  # Decay of Adam's average gradient.
  b1: float = 0.9
  # Decay of Adam's average squared gradient.
  b2: float = 0.999
  # Added to Adam's denominator.
  eps: float = 1e-8
  # Momentum of "sgd".
  momentum: float = 0.0
  # Nesterov's form of the momentum of "sgd".
  nesterov: bool = False
  # Decoupled for "adamw"; added to the gradient for "sgd".
  weight_decay: float = 0.0
  # Largest global norm of the gradient.
  grad_clip: float = 0.0
  # Equal parts in which the batch passes through the model.
  accumulate_steps: int = 1
  # Type of parameters and float inputs inside the model; updates are float32.
  compute_dtype: Literal["float32", "bfloat16"] = "float32"
  # Updates between two lines of training metrics.
  log_every: int = 100
  # Updates between two evaluations; the last update is always evaluated.
  eval_every: int = 1000
  # Updates between two checkpoints; the last update is always saved.
  checkpoint_every: int = 1000
  # Metric that picks the best checkpoint; the latest wins a tie.
  selection_metric: str = "loss"
  # Whether the selection metric is to be minimised or maximised.
  selection_mode: Literal["min", "max"] = "min"
  # Evaluations in a row without a new best after which the run ends early.
  patience: int = 0
  # Metric that they are to improve; "": the selection metric.
  patience_metric: str = ""
  # Updates before which evaluations do not count; a curriculum's, for example.
  patience_from: int = 0
  # How good the metric must be for an evaluation to count; 0: however good.
  patience_at: float = 0.0
  # Also write TensorBoard events.
  tensorboard: bool = True
  # Weights & Biases project that also receives the metrics.
  wandb: str = ""

  def __post_init__(self):
    positive = ("num_steps", "batch_size", "accumulate_steps", "log_every")
    for name in (*positive, "eval_every", "checkpoint_every"):
      if getattr(self, name) < 1:
        raise UserError(f"{name}={getattr(self, name)} must be at least 1")
    counts = ("warmup_steps", "steps_per_decay", "steps_per_cycle")
    for name in (*counts, "patience", "patience_from"):
      if getattr(self, name) < 0:
        raise UserError(f"{name}={getattr(self, name)} must not be negative")
    if self.grad_clip < 0:
      raise UserError(f"grad_clip={self.grad_clip} must not be negative")
    if not 0 <= self.seed < 2**32:
      raise UserError(f"seed={self.seed} must lie in [0, 2**32)")

  def tensorboard_scalars(
    self, kind: str, row: Mapping[str, float]
  ) -> dict[str, float]:
    """What TensorBoard shows of a row of metrics.jsonl, by its tags.

    Args:
      kind: "train" or "eval".
      row: the row's metrics.
    """
    return {f"{kind}/{name}": value for name, value in row.items()}

  def upgraded(self, fields: dict[str, Any]) -> dict[str, Any]:
    """The config.json of an older version, as this version would write it."""
    return {
      "patience": 0,
      "patience_metric": "",
      "patience_from": 0,
      "patience_at": 0.0,
      **fields,
    }


def from_config_dict(
  config: ml_collections.ConfigDict | Mapping[str, Any],
  cls: type[T] = TrainConfig,  # ty: ignore[invalid-parameter-default]
  prefix: str = "",
) -> T:
  """Builds the dataclass `cls`; an unknown key or a wrong type is an error.

  The content of a config.json can be passed with the fingerprint in it.

  Args:
    config: the fields.
    cls: the dataclass.
    prefix: what stands before the keys in the user's config, for errors.
  """
  if isinstance(config, ml_collections.ConfigDict):
    config = config.to_dict()
  settings = {n: value for n, value in config.items() if n != FINGERPRINT}
  return _build(settings, cls, prefix)


def reject_unread(
  config: TrainConfig, names: Iterable[str], read: Iterable[str], reader: str
) -> None:
  """Raises if a field in `names` is set although `reader` ignores it."""
  defaults = {f.name: f.default for f in dataclasses.fields(config)}
  for name in sorted(set(names) - set(read)):
    if getattr(config, name) != defaults[name]:
      raise UserError(
        f"{name}={getattr(config, name)} has no effect: {reader} does not"
        f" read it (leave it at {defaults[name]})"
      )


def _build(config, cls, prefix):
  annotations = typing.get_type_hints(cls)
  fields = {f.name: annotations[f.name] for f in dataclasses.fields(cls)}
  values = {}
  for name, value in config.items():
    if name not in fields:
      raise UserError(spelling.unknown("config key", name, fields, prefix))
    values[name] = _checked(value, fields[name], prefix + name)
  return cls(**values)


def _checked(value, annotation, name):
  """The value as its field's type; raises `UserError` if it does not fit."""
  origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
  if origin is Literal:
    if value not in arguments:
      raise UserError(f"{name}={value!r} is not one of {', '.join(arguments)}")
    return value
  if origin in (types.UnionType, typing.Union):
    if value is None and type(None) in arguments:
      return None
    (annotation,) = (a for a in arguments if a is not type(None))
    return _checked(value, annotation, name)
  if origin is tuple and isinstance(value, list | tuple):
    return tuple(_checked(v, arguments[0], name) for v in value)
  if dataclasses.is_dataclass(annotation) and isinstance(value, Mapping):
    return _build(value, annotation, prefix=name + ".")
  kind = origin or annotation
  if kind is Any or (kind is float and type(value) is int):
    return value if kind is Any else float(value)
  if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
    return value
  expected = kind.__name__
  raise UserError(
    f"{name}={value!r} has type {type(value).__name__}, not {expected}"
  )
