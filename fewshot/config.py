"""The settings of a few-shot experiment, and the experiment they describe."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from absl import flags
from flax import linen as nn

from command_line import script
from configs.fewshot import base
from fewshot import episodes
from fewshot.data import registry
from fewshot.data.dataset import Dataset
from fewshot.network import BaseNetwork
from nam_jax import training
from nam_jax.training.fingerprint import Fingerprint

DEFAULT = "configs/fewshot/glyphs.py"
NAMES = {
  "heads": base.CHOICES,
  "presets": (
    "cpu (default)",
    "paper (only cifar.py and mini_imagenet.py)",
    "long (only folder.py)",
    "sessions (only mini_imagenet.py and omniglot.py)",
    "claim (only glyphs.py, mini_imagenet.py and omniglot.py)",
  ),
  "data": registry.SOURCES,
}
_FLAGS = {"data_dir": "folder with the data; glyphs need none"}


@dataclasses.dataclass(frozen=True)
class StageConfig(training.TrainConfig):
  """The engine's settings for one stage, and what else affects its result."""

  settings: dict[str, Any] = dataclasses.field(default_factory=dict)
  selection_metric: str = "novel"
  selection_mode: Literal["min", "max"] = "max"


@dataclasses.dataclass(frozen=True)
class SessionConfig:
  """New classes in sessions; see `sessions`. No sessions: none."""

  num_sessions: int = 0
  num_way: int = 5
  num_shot: int = 5
  # Queries of each new class, at most.
  num_query: int = 100
  # Random orders of the classes.
  num_rounds: int = 10

  def __post_init__(self):
    least = {"num_sessions": 0, "num_way": 1, "num_shot": 1}
    least |= {"num_query": 1, "num_rounds": 1}
    for name, value in least.items():
      if getattr(self, name) < value:
        raise training.UserError(
          f"sessions.{name}={getattr(self, name)} must be at least {value}"
        )


@dataclasses.dataclass(frozen=True)
class RecipeConfig:
  """How stage 1 may train better features; see `recipe`. 0 is off."""

  # Share of each label that goes to all classes.
  label_smoothing: float = 0.0
  # Parameter of the Beta distribution of mixup.
  mixup: float = 0.0
  # Weight of a second task: by how many quarters an image is turned.
  rotation: float = 0.0
  # Decay of an exponential average of the weights, which is what is used.
  ema: float = 0.0

  def __post_init__(self):
    for name in ("label_smoothing", "ema"):
      if not 0 <= getattr(self, name) < 1:
        raise training.UserError(
          f"recipe.{name}={getattr(self, name)} must lie in [0, 1)"
        )
    for name in ("mixup", "rotation"):
      if getattr(self, name) < 0:
        raise training.UserError(
          f"recipe.{name}={getattr(self, name)} must not be negative"
        )


@dataclasses.dataclass(frozen=True)
class FewShotConfig:
  """Two stages of training, and the episodes to test on."""

  # Seed of every random choice.
  seed: int = 0
  # A name from fewshot/data/registry.py, and its settings.
  data: str = "glyphs"
  data_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # A name from fewshot/backbones.py, and its fields.
  backbone: str = "conv64"
  backbone_kwargs: dict[str, Any] = dataclasses.field(default_factory=dict)
  # Augmentation of training images: random shifts in pixels, reflections.
  pad: int = 0
  flip: bool = False
  # Whether features are means over an image and its mirror image.
  mirror: bool = False
  # More ways to better features in stage 1.
  recipe: RecipeConfig = RecipeConfig()
  # Name in the results -> {"kind": a name from fewshot/heads.py, its fields,
  # "calibrate": True to fit a bias of novel logits on the validation classes}.
  heads: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
  # Supports per novel class; the heads are trained separately for each.
  shots: tuple[int, ...] = (1, 5)
  # More numbers of supports to test with, for the picture.
  curve_shots: tuple[int, ...] = ()
  # Novel classes per episode, queries per class, queries of base classes.
  num_way: int = 5
  num_query: int = 15
  num_base_query: int = 75
  # Queries in the training episodes of stage 2.
  train_query: int = 3
  train_base_query: int = 15
  # Dropout on the features in stage 2.
  feature_dropout_rate: float = 0.0
  # Episodes per test and per validation.
  num_episodes: int = 2000
  num_val_episodes: int = 500
  # Sessions with new classes after the test.
  sessions: SessionConfig = SessionConfig()
  # Head that the others are compared with; "": the tuned cosine classifier.
  compare_with: str = ""
  # Whether ways, shots and queries shrink to what there is of the data.
  adapt: bool = False
  # Whether saved classifiers also know the classes of val and test.
  learn_all: bool = False
  # Fields of `TrainConfig` for the two stages.
  stage1: dict[str, Any] = dataclasses.field(default_factory=dict)
  stage2: dict[str, Any] = dataclasses.field(default_factory=dict)

  def make_stage1(self) -> StageConfig:
    """How the base network is trained."""
    names = ("data", "data_kwargs", "backbone", "backbone_kwargs", "pad")
    names += ("flip", "num_way", "num_query", "num_base_query")
    names += ("num_val_episodes",)
    settings = {name: getattr(self, name) for name in names}
    if self.recipe != RecipeConfig():  # older runs have no such setting
      settings["recipe"] = dataclasses.asdict(self.recipe)
    return self._stage("stage1", settings)

  def make_stage2(self, label: str, num_shot: int) -> StageConfig:
    """How one head is trained for one number of supports."""
    names = ("num_way", "num_query", "num_base_query", "train_query")
    names += ("train_base_query", "feature_dropout_rate", "num_val_episodes")
    settings = {name: getattr(self, name) for name in names}
    settings |= {"head": self.heads[label], "num_shot": num_shot}
    if self.mirror:  # older runs have no such setting
      settings["mirror"] = True
    return self._stage("stage2", settings)

  def compared_with(self) -> str | None:
    """The head that the others are compared with, if there is one."""
    if self.compare_with:
      return self.compare_with
    for label, entry in self.heads.items():
      if entry["kind"] == "cosine_tuned" and not entry.get("calibrate"):
        return label
    return None

  def most_shots(self, split: str) -> int:
    """Supports per class in the episodes of "val" or "test"."""
    return max(self.shots + (self.curve_shots if split == "test" else ()))

  def test_size(self, num_shot: int) -> episodes.Size:
    """Size of the episodes in validation and test."""
    sizes = (self.num_query, self.num_base_query)
    return episodes.Size(self.num_way, num_shot, *sizes)

  def train_size(self, num_shot: int) -> episodes.Size:
    """Size of the training episodes of stage 2."""
    sizes = (self.train_query, self.train_base_query)
    return episodes.Size(self.num_way, num_shot, *sizes)

  def _stage(self, stage, settings):
    given = getattr(self, stage)
    if "seed" in given:
      raise training.UserError(
        f"{stage}.seed cannot be set: both stages use seed={self.seed}"
      )
    fields = {**given, "seed": self.seed, "settings": settings}
    return training.from_config_dict(fields, StageConfig, f"{stage}.")


class Experiment(NamedTuple):
  """A config, its folder, and the data and modules it names."""

  config: FewShotConfig
  workdir: Path
  dataset: Dataset
  network: BaseNetwork
  heads: dict[str, nn.Module]
  fingerprint: Fingerprint


def read(
  argv: Sequence[str], usage: str
) -> tuple[FewShotConfig, flags.FlagValues]:
  """The config that argv chooses, and the other flags."""
  values, fields = script.read(argv, usage, DEFAULT, NAMES, _FLAGS)
  return training.from_config_dict(fields, FewShotConfig), values
