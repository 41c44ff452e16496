"""Few-shot learning next to base classes, from the settings to the results.

Stage 1 trains features and a cosine classifier of the base classes. Stage 2
trains every head of the config on episodes, once for each number of supports;
the features do not change. Then all heads answer the same test episodes.
"""

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from command_line import machine, script
from data_files import files_read
from fewshot import (
  backbones,
  episodes,
  evaluate,
  heads,
  network,
  pictures,
  plan,
  preprocess,
  sessions,
  stage1,
  stage2,
  table,
)
from fewshot import config as config_lib
from fewshot.classifier import FewShotClassifier
from fewshot.config import Experiment, FewShotConfig
from fewshot.data import registry
from nam_jax import spelling, training
from nam_jax.training import fingerprint, run_dir, whole_files
from nam_jax.training.config import FINGERPRINT


def main(argv: Sequence[str], usage: str = __doc__) -> None:
  """Trains and tests as the flags in argv say."""
  config, flags = config_lib.read(argv, usage)
  training.connect()
  experiment = make_experiment(config, flags.workdir, flags.data_dir)
  if config.adapt and training.is_main():
    print(plan.described(experiment.config, experiment.dataset), flush=True)
  results = run(experiment, train=not flags.test_only)
  if training.is_main():
    print(table.show(results))
    print(f"the best classifier is {experiment.workdir / 'classifier.npz'}")
    print(script.ending(experiment.workdir, argv))


def make_experiment(
  config: FewShotConfig, workdir: str, data_dir: str
) -> Experiment:
  """Reads the data and builds the networks.

  Wrong settings raise `UserError` here, before anything is written.
  """
  if not config.shots or min(config.shots + config.curve_shots) < 1:
    raise training.UserError(
      f"shots={config.shots} and curve_shots={config.curve_shots} must be"
      " positive, and shots not empty"
    )
  with script.user_errors():
    data_dir = data_dir or None
    with files_read.recorded() as files:
      dataset = registry.load(config.data, data_dir, **config.data_kwargs)
    if config.adapt:
      config = plan.fitted(config, dataset)
    for split in ("val", "test"):
      size = config.test_size(config.most_shots(split))
      episodes.check(getattr(dataset, split), size, split)
    size = config.train_size(max(config.shots))
    episodes.check(dataset.base_train, size, "base_train")
    if config.sessions.num_sessions:
      sessions.check(config.sessions, dataset.test)
    if config.recipe.rotation and dataset.test.data.ndim != 4:
      raise ValueError("recipe.rotation turns images, but these are features")
    if config.mirror and dataset.test.data.ndim != 4:
      raise ValueError("mirror needs images, but these are features")
    if config.compare_with and config.compare_with not in config.heads:
      raise ValueError(
        spelling.unknown("head", config.compare_with, config.heads)
      )
    num_base = len(dataset.base_train.names)
    if num_base <= config.num_way:
      raise ValueError(
        f"num_way={config.num_way} leaves none of the {num_base} base classes"
        " in a training episode of stage 2"
      )
    net = network.BaseNetwork(
      backbones.make_backbone(config.backbone, **config.backbone_kwargs),
      num_base,
    )
    jax.eval_shape(net.init, jax.random.key(0), dataset.base_train.data[:1])
    modules = {label: _make_head(config, label) for label in config.heads}
    config.make_stage1()
    for label in config.heads:
      config.make_stage2(label, config.shots[0])
  workdir = Path(workdir or f"runs/fewshot-{config.data}")
  splits = {name: s.content for name, s in dataset.splits().items()}
  data = fingerprint.make(splits, files_read.named(files))
  return Experiment(config, workdir, dataset, net, modules, data)


def run(experiment: Experiment, *, train: bool = True) -> dict[str, Any]:
  """Trains both stages, tests every head, and writes results and pictures.

  A stopped run continues. With train=False, what has been trained is only
  tested.
  """
  alone = run_dir.owned if train else contextlib.nullcontext
  with alone(experiment.workdir):
    return _run(experiment, train)


def _run(experiment, train):
  config, workdir = experiment.config, experiment.workdir
  drawn = {split: draw(experiment, split) for split in ("val", "test")}
  base = stage1.run(experiment, drawn["val"], train=train)
  features = stage1.features(experiment, base.best)
  tests, curve, classifiers, arrived = {}, {}, {}, {}
  for shot in config.shots:
    trained = {}
    for label in config.heads:
      trained[label] = stage2.run(
        experiment, features, drawn, label, shot, train=train
      )
      held_out = evaluate.means(
        stage2.accuracies(trained[label], features, drawn, shot, "val")
      )
      if training.is_main():
        made = _classifier(
          experiment, base.best, trained[label], label, held_out["threshold"]
        )
        _save(made, workdir / f"{label}-{shot}shot")
        classifiers[shot, held_out["both"]] = made
    tests[str(shot)] = _tested(config, trained, features, drawn, shot)
    if config.sessions.num_sessions and shot == max(config.shots):
      arrived = _arrived(experiment, trained, features)
    for other in config.curve_shots:
      if shot == min(config.shots, key=lambda s: (abs(s - other), s)):
        curve[str(other)] = {
          label: evaluate.summary(
            stage2.accuracies(head, features, drawn, other)
          )
          for label, head in trained.items()
        }
  results = {
    "data": config.data,
    "backbone": config.backbone,
    "seed": config.seed,
    "num_way": config.num_way,
    "num_episodes": config.num_episodes,
    "machine": machine.about(),
    "stage1": {
      "seconds": base.seconds,
      "validation": [
        {name: row.get(name) for name in ("step", "novel", "base", "both")}
        for row in base.history
        if row["kind"] == "eval"
      ],
    },
    "shots": tests,
    "curve": dict(sorted(curve.items(), key=lambda item: int(item[0]))),
  }
  if arrived:
    results["sessions"] = arrived
  if training.is_main():
    settings = dataclasses.asdict(config)
    settings[FINGERPRINT] = experiment.fingerprint
    whole_files.write_json(workdir / "config.json", settings)
  training.write_results(workdir, results)
  if training.is_main():
    _save(classifiers[max(classifiers)], workdir)
    pictures.save(workdir, results)
  return results


def draw(experiment: Experiment, split: str) -> episodes.Episodes:
  """The episodes of "val" or "test", the same for every head.

  They hold as many supports as are ever used; fewer shots use the first ones.
  """
  config, dataset = experiment.config, experiment.dataset
  number = {"val": config.num_val_episodes, "test": config.num_episodes}[split]
  return episodes.sample(
    config.seed,
    episodes.by_class(getattr(dataset, split)),
    episodes.by_class(getattr(dataset, f"base_{split}")),
    config.test_size(config.most_shots(split)),
    number,
  )


def _make_head(config, label):
  try:
    return heads.make_head(**_head_fields(config, label))
  except (TypeError, ValueError) as error:
    raise ValueError(f"heads.{label}: {error}") from error


def _head_fields(config, label):
  fields = config.heads[label].items()
  return {name: value for name, value in fields if name != "calibrate"}


def _classifier(experiment, base, head, label, threshold):
  config, dataset = experiment.config, experiment.dataset
  base_train = dataset.base_train
  shape = base_train.data.shape[1:]
  how = preprocess.of_shape(shape, dataset.inverted)
  spec = {
    "backbone": {"name": config.backbone, **config.backbone_kwargs},
    "head": _head_fields(config, label),
    "input_shape": list(shape),
    "names": list(base_train.names),
    "novel_bias": head.novel_bias,
    "mirror": config.mirror,
    "preprocess": how and dataclasses.asdict(how),
    "held_out_threshold": threshold,
  }
  variables = {"params": base.params, **base.extra}
  classifier = FewShotClassifier(spec, variables, head.params)
  if config.learn_all:
    _teach(classifier, dataset)
  return classifier


def _teach(classifier, dataset):
  """Adds the classes that are not base classes.

  If there are no others, the base classes become added ones, so that they
  learn further examples and compare with classes that are added later.
  """
  splits = (dataset.val, dataset.test)
  if dataset.has_stand_ins:
    splits = (dataset.base_train,)
    for name in classifier.names:
      classifier.remove(name)
  for split in splits:
    for name, rows in zip(split.names, split.rows_by_class(), strict=True):
      classifier.add(name, split.data[rows])


def _save(classifier, folder):
  folder.mkdir(parents=True, exist_ok=True)
  classifier.save(folder / "classifier.npz")


def _arrived(experiment, trained, features):
  """Results of the sessions, for all heads."""
  config, dataset = experiment.config, experiment.dataset
  rounds = sessions.draw(config.sessions, dataset.test, config.seed)
  found = {
    label: sessions.measure(
      config.sessions, head, features, dataset.base_test, rounds
    )
    for label, head in trained.items()
  }
  return sessions.results(config.sessions, found, config.compared_with())


def _tested(config, trained, features, drawn, shot):
  """Test results of all heads, compared with one of them."""
  found = {
    label: stage2.accuracies(head, features, drawn, shot)
    for label, head in trained.items()
  }
  tested = {}
  for label, head in trained.items():
    other = config.compared_with()
    other = other if other != label else None
    ours, theirs = found[label], found.get(other)
    tested[label] = {
      "accuracy": evaluate.summary(ours),
      "compared_with": other,
      "difference": evaluate.paired(ours, theirs) if other else {},
      "novel_bias": head.novel_bias,
      "parameters": training.parameter_count(head.params),
      "seconds": head.seconds,
    }
  return tested
