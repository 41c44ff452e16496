"""Ways, shots and queries that fit the data, for data of any size."""

import dataclasses

from data_files.errors import DataError
from fewshot.config import FewShotConfig
from fewshot.data.dataset import Dataset


def fitted(config: FewShotConfig, data: Dataset) -> FewShotConfig:
  """The config with episodes that the data can fill, no larger than before."""
  num_base = len(data.base_train.names)
  num_new = min(len(data.val.names), len(data.test.names))
  trained = int(data.base_train.counts().min())
  new = int(min(data.val.counts().min(), data.test.counts().min()))
  if num_base < 2 or min(trained, new) < 2:
    raise DataError(
      f"{num_base} base classes with {trained} training images each, and {new}"
      " images of each other class: few-shot learning needs 2 or more of each"
    )
  most = min(trained, new) - 1
  shots = tuple(sorted({min(shot, most) for shot in config.shots}))
  curve = tuple(shot for shot in config.curve_shots if shot < new)
  return dataclasses.replace(
    config,
    num_way=min(config.num_way, num_new, num_base - 1),
    shots=shots,
    curve_shots=curve,
    num_query=min(config.num_query, new - max(shots + curve)),
    train_query=min(config.train_query, trained - max(shots)),
  )


def described(config: FewShotConfig, data: Dataset) -> str:
  """What a run will do, in some lines."""
  base, val, test = data.base_train, data.val, data.test
  counts = base.counts()
  shots = " and ".join(map(str, config.shots))
  lines = [
    f"{len(base.names)} base classes with {counts.min()} to {counts.max()}"
    f" training images; {len(val.names)} classes for validation and"
    f" {len(test.names)} new ones for the test",
  ]
  if data.has_stand_ins:
    lines.append(
      "these are turned base classes, since 8 classes are needed to set some"
      " aside: their accuracies say little"
    )
  if data.base_test is data.base_train:
    lines.append(
      "4 images per class are needed to hold some out: base classes are tested"
      " with training images"
    )
  lines.append(
    f"episodes of {config.num_way} new classes with {shots} examples each and"
    f" {config.num_query} queries; {config.stage1['num_steps']} and"
    f" {config.stage2['num_steps']} updates"
  )
  return "\n".join(lines)
