"""Stage 1: features and base classes, learned together."""

import io
import zipfile
from typing import Any, NamedTuple

import jax
import numpy as np

from fewshot import episodes, evaluate, heads, network
from fewshot.config import Experiment
from fewshot.data.dataset import Split
from nam_jax import training
from nam_jax.training import classification


class Features(NamedTuple):
  """Feature vectors of every split, [n d], and the base network's weights."""

  base_train: np.ndarray
  base_val: np.ndarray
  base_test: np.ndarray
  val: np.ndarray
  test: np.ndarray
  base: np.ndarray  # [c d]
  scale: np.ndarray
  step: np.ndarray  # of the checkpoint they are from


class _Rows:
  def __init__(self, split: Split):
    self._split = split

  def __len__(self):
    return len(self._split.labels)

  def __getitem__(self, index):
    return {
      "inputs": self._split.data[index],
      "label": self._split.labels[index],
    }


def make_init_fn(experiment: Experiment):
  """key -> variables, with the statistics of the training data."""
  data = experiment.dataset.base_train.data

  def init_fn(key: jax.Array) -> dict[str, Any]:
    variables = experiment.network.init(key, data[:1])
    return network.with_input_stats(
      variables, data[:: max(1, len(data) // 5000)]
    )

  return init_fn


def make_loss_fn(experiment: Experiment):
  """Cross-entropy of the base classes; see `training.step`."""
  config, net = experiment.config, experiment.network

  def loss_fn(params, extra, batch, key):
    augment_key, dropout_key = jax.random.split(key)
    inputs = batch["inputs"]
    if inputs.ndim == 4:
      inputs = network.augment(augment_key, inputs, config.pad, config.flip)
    (_, logits), updated = net.apply(
      {"params": params, **extra},
      inputs,
      train=True,
      mutable=["batch_stats"],
      rngs={"dropout": dropout_key},
    )
    loss, metrics = classification.loss_and_metrics(logits, batch["label"])
    return loss, (metrics, {**extra, **updated})

  return loss_fn


def train(experiment: Experiment) -> None:
  """Trains, or goes on training, until `num_steps`; best by novel accuracy."""
  dataset = experiment.dataset
  drawn = draw(experiment, "val")
  extract = network.make_extract(experiment.network)
  c = len(dataset.base_train.names)
  cosine = heads.EpisodeNetwork(heads.Cosine(learn_scale=False), c)

  def measure(state):
    variables = {"params": state.params, **state.extra}
    splits = (dataset.val, dataset.base_val)
    novel, base = (extract(variables, split.data) for split in splits)
    params = {name: state.params[name] for name in ("base", "scale")}
    accuracies = evaluate.evaluate(cosine, params, novel, base, drawn, 1)
    return evaluate.means(accuracies)

  training.fit(
    experiment.stage1(),
    experiment.workdir / "stage1",
    make_init_fn(experiment),
    make_loss_fn(experiment),
    _Rows(dataset.base_train),
    measure,
  )


def draw(experiment: Experiment, split: str) -> episodes.Episodes:
  """The episodes of "val" or "test", the same for every head.

  They have as many supports as are ever used; fewer shots use the first ones.
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


def load(experiment: Experiment) -> training.TrainState:
  """Stage 1's best state."""
  stage, folder = experiment.stage1(), experiment.workdir / "stage1"
  return training.load_best(stage, folder, make_init_fn(experiment))


def features(experiment: Experiment, state: training.TrainState) -> Features:
  """Those of a state of stage 1; kept in features.npz beside it."""
  path = experiment.workdir / "features.npz"
  splits = experiment.dataset.splits()
  kept = _read(path)
  if (
    kept is not None
    and np.array_equal(kept.base, state.params["base"])
    and all(len(getattr(kept, n)) == len(s.data) for n, s in splits.items())
  ):
    return kept
  extract = network.make_extract(experiment.network)
  variables = {"params": state.params, **state.extra}
  found = Features(
    **{name: extract(variables, split.data) for name, split in splits.items()},
    base=np.asarray(state.params["base"]),
    scale=np.asarray(state.params["scale"]),
    step=np.asarray(state.step),
  )
  if training.is_main():
    part = path.with_name("features.part.npz")
    np.savez(part, **found._asdict())
    part.replace(path)
  return found


def _read(path):
  """The features in a file; None if there are none, or not whole ones."""
  try:
    content = io.BytesIO(path.read_bytes())
    with np.load(content, allow_pickle=False) as file:
      return Features(**file)
  except (OSError, EOFError, ValueError, TypeError, zipfile.BadZipFile):
    return None
