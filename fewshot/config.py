"""The settings of a few-shot experiment, and what they name."""

import dataclasses
from pathlib import Path
from typing import Any, Literal, NamedTuple

import jax
from flax import linen as nn

from command_line import script
from fewshot import backbones, episodes, heads, network
from fewshot.data import registry
from fewshot.data.dataset import DataError, Dataset
from nam_jax import training


@dataclasses.dataclass(frozen=True)
class FewShotConfig:
  """Two stages of training, and episodes to test on."""

  # Source of every random choice.
  seed: int = 0
  # A source of fewshot/registry.py, and its settings.
  data: str = "glyphs"
  data_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # A name of fewshot/backbones.py, and its fields.
  backbone: str = "conv64"
  backbone_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Random shifts of training images, in pixels; random reflections.
  pad: int = 0
  flip: bool = False
  # Name in the results -> {"kind": a name of fewshot/heads.py, its fields,
  # "calibrate": True to fit a bias of novel logits on the validation classes}.
  heads: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
  # Supports per novel class; each number has heads of its own.
  shots: tuple[int, ...] = (1, 5)
  # Further numbers of supports to test heads with, for the picture.
  curve_shots: tuple[int, ...] = ()
  # Novel classes of an episode; queries of each; queries of base classes.
  num_way: int = 5
  num_query: int = 15
  num_base_query: int = 75
  # Queries of the episodes of stage 2.
  train_query: int = 3
  train_base_query: int = 15
  # Dropout of the features in stage 2.
  feature_dropout_rate: float = 0.0
  # Episodes of the test, and of each validation.
  num_episodes: int = 2000
  num_val_episodes: int = 500
  # Fields of `TrainConfig` for the two stages.
  stage1: dict[str, Any] = dataclasses.field(default_factory=dict)
  stage2: dict[str, Any] = dataclasses.field(default_factory=dict)

  def most_shots(self, split: str) -> int:
    """Supports that the episodes of "val" or "test" have."""
    return max(self.shots + (self.curve_shots if split == "test" else ()))

  def test_size(self, num_shot: int) -> episodes.Size:
    """Of an episode of validation or test."""
    sizes = (self.num_query, self.num_base_query)
    return episodes.Size(self.num_way, num_shot, *sizes)

  def train_size(self, num_shot: int) -> episodes.Size:
    """Of an episode of stage 2."""
    sizes = (self.train_query, self.train_base_query)
    return episodes.Size(self.num_way, num_shot, *sizes)


@dataclasses.dataclass(frozen=True)
class StageConfig(training.TrainConfig):
  """The engine's settings of one stage, and what else decides its result."""

  settings: dict[str, Any] = dataclasses.field(default_factory=dict)
  selection_metric: str = "novel"
  selection_mode: Literal["min", "max"] = "max"


class Experiment(NamedTuple):
  """A config with its folder and what it names."""

  config: FewShotConfig
  workdir: Path
  dataset: Dataset
  network: network.BaseNetwork
  heads: dict[str, nn.Module]

  def stage1(self) -> StageConfig:
    """The config of the base network's training."""
    names = ("data", "data_kwargs", "backbone", "backbone_kwargs", "pad")
    names += ("flip", "num_way", "num_query", "num_base_query")
    names += ("num_val_episodes",)
    settings = {name: getattr(self.config, name) for name in names}
    return _stage(self.config, "stage1", settings)

  def stage2(self, label: str, num_shot: int) -> StageConfig:
    """The config of a head's training; its folder lies beside stage 1's."""
    names = ("num_way", "num_query", "num_base_query", "train_query")
    names += ("train_base_query", "feature_dropout_rate", "num_val_episodes")
    settings = {name: getattr(self.config, name) for name in names}
    settings |= {"head": self.config.heads[label], "num_shot": num_shot}
    return _stage(self.config, "stage2", settings)


def make_experiment(
  config: FewShotConfig, workdir: str, data_dir: str
) -> Experiment:
  """Reads the data, builds the networks; what does not fit: `UserError`."""
  if not config.shots or min(config.shots + config.curve_shots) < 1:
    raise training.UserError(
      f"shots={config.shots} must be one or more numbers from 1 on"
    )
  with script.user_errors():
    try:
      dataset = registry.load(
        config.data, data_dir or None, **config.data_kwargs
      )
      for split in ("val", "test"):
        size = config.test_size(config.most_shots(split))
        episodes.check(getattr(dataset, split), size, split)
      size = config.train_size(max(config.shots))
      episodes.check(dataset.base_train, size, "base_train")
    except DataError as error:
      raise training.UserError(str(error)) from error
    base = network.BaseNetwork(
      backbones.make_backbone(config.backbone, **config.backbone_kwargs),
      len(dataset.base_train.names),
    )
    experiment = Experiment(
      config,
      Path(workdir or f"runs/fewshot-{config.data}"),
      dataset,
      base,
      {label: _head(label, entry) for label, entry in config.heads.items()},
    )
    _check(experiment)
  return experiment


def _check(experiment):
  """Wrong settings fail here, before anything is written."""
  config, dataset = experiment.config, experiment.dataset
  if len(dataset.base_train.names) <= config.num_way:
    raise ValueError(
      f"num_way={config.num_way} leaves no base class of"
      f" {len(dataset.base_train.names)} in an episode of stage 2"
    )
  jax.eval_shape(
    experiment.network.init, jax.random.key(0), dataset.base_train.data[:1]
  )
  experiment.stage1()
  for label in config.heads:
    experiment.stage2(label, config.shots[0])


def _stage(config, stage, settings):
  given = getattr(config, stage)
  if "seed" in given:
    raise training.UserError(f"{stage}.seed: set seed, of the whole run")
  fields = {**given, "seed": config.seed, "settings": settings}
  return training.from_config_dict(fields, StageConfig)


def _head(label, entry):
  fields = dict(entry)
  fields.pop("calibrate", None)
  try:
    return heads.make_head(**fields)
  except (TypeError, ValueError) as error:
    raise ValueError(f"heads.{label}: {error}") from error
