"""Stage 1: features and a cosine classifier of the base classes."""

from typing import Any, NamedTuple

import jax
import numpy as np

from data_files import disk
from data_files.errors import DataError
from fewshot import evaluate, heads, network, recipe
from fewshot.config import Experiment, RecipeConfig
from fewshot.data.dataset import Split
from fewshot.episodes import Episodes
from nam_jax import training
from nam_jax.ops import normalize
from nam_jax.training import classification, whole_files
from nam_jax.training.state import InitFn
from nam_jax.training.step import LossFn

PLAIN = RecipeConfig()


def run(
  experiment: Experiment, drawn: Episodes, *, train: bool
) -> training.FitResult:
  """Trains the base network, or loads it if already trained.

  The best state has the highest one-shot accuracy in the episodes `drawn` from
  the validation classes.
  """
  config, workdir, dataset, net, _, fingerprint = experiment
  stage, folder = config.make_stage1(), workdir / "stage1"
  init_fn = make_init_fn(net, dataset.base_train.data, config.recipe)
  if not train:
    loaded = training.load(stage, folder, init_fn, fingerprint)
    return loaded._replace(best=averaged(loaded.best))
  extract = network.make_extract(net)
  cosine = heads.EpisodeNetwork(heads.make_head("cosine"), net.num_classes)

  def measure(state):
    state = averaged(state)
    variables = {"params": state.params, **state.extra}
    novel = extract(variables, dataset.val.data)
    base = extract(variables, dataset.base_val.data)
    params = {name: state.params[name] for name in ("base", "scale")}
    accuracies = evaluate.evaluate(cosine, params, novel, base, drawn, 1)
    return evaluate.means(accuracies)

  loss_fn = make_loss_fn(net, config.pad, config.flip, config.recipe)
  rows = Rows(dataset.base_train)
  fitted = training.fit(
    stage, folder, init_fn, loss_fn, rows, measure, fingerprint
  )
  return fitted._replace(best=averaged(fitted.best))


def averaged(state: training.TrainState) -> training.TrainState:
  """The state with the averages of its weights, if it has any."""
  if "ema" not in state.extra:
    return state
  extra = dict(state.extra)
  average = extra.pop("ema")
  if "batch_stats" in extra:
    extra["batch_stats"] = average["batch_stats"]
  return state.replace(params=average["params"], extra=extra)


class Features(NamedTuple):
  """Feature vectors of every split, [n d], and the base classifier."""

  base_train: np.ndarray
  base_val: np.ndarray
  base_test: np.ndarray
  val: np.ndarray
  test: np.ndarray
  base: np.ndarray  # weights of the base classes, [c d]
  scale: np.ndarray
  step: np.ndarray  # of the checkpoint


def features(experiment: Experiment, trained: training.TrainState) -> Features:
  """Features from the trained network; features.npz keeps them for next time.

  The file is used only if it matches the weights and the data. Features of
  mirrored images have a file of their own.
  """
  mirror = experiment.config.mirror
  path = experiment.workdir / f"features{'_mirror' * mirror}.npz"
  splits, kept = experiment.dataset.splits(), _read(path)
  if (
    kept is not None
    and np.array_equal(kept.base, trained.params["base"])
    and np.array_equal(kept.scale, trained.params["scale"])
    and all(
      getattr(kept, name).shape == (len(split.data), kept.base.shape[1])
      for name, split in splits.items()
    )
  ):
    return kept
  extract = network.make_extract(experiment.network, mirror=mirror)
  variables = {"params": trained.params, **trained.extra}
  found = Features(
    **{name: extract(variables, split.data) for name, split in splits.items()},
    base=np.asarray(trained.params["base"]),
    scale=np.asarray(trained.params["scale"]),
    step=np.asarray(trained.step),
  )
  if training.is_main():
    whole_files.write_npz(path, found._asdict())
  return found


class Rows:
  """A split as a source of training data; see `training.data`."""

  def __init__(self, split: Split):
    self._split = split

  def __len__(self) -> int:
    return len(self._split.labels)

  def __getitem__(self, index: int) -> dict[str, np.ndarray]:
    return {
      "inputs": self._split.data[index],
      "label": self._split.labels[index],
    }


def make_init_fn(
  net: network.BaseNetwork, data: np.ndarray, how: RecipeConfig = PLAIN
) -> InitFn:
  """key -> variables, with the input statistics of the training data."""
  sample = data[:: max(1, len(data) // 5000)]

  def init_fn(key: jax.Array) -> dict[str, Any]:
    variables = dict(network.with_input_stats(net.init(key, data[:1]), sample))
    if how.rotation:
      params = variables["params"]
      d = params["base"].shape[1]
      turns = jax.random.normal(jax.random.fold_in(key, 1), (recipe.TURNS, d))
      variables["params"] = {**params, "turns": turns * (2 / d) ** 0.5}
    if how.ema:
      variables["ema"] = recipe.start_average(variables)
    return variables

  return init_fn


def make_loss_fn(
  net: network.BaseNetwork, pad: int, flip: bool, how: RecipeConfig = PLAIN
) -> LossFn:
  """Cross-entropy of augmented images over the base classes."""

  def loss_fn(params, extra, batch, key):
    augment_key, dropout_key = jax.random.split(key)
    mix_key, turn_key = jax.random.split(jax.random.fold_in(key, 1))
    inputs, labels = batch["inputs"], batch["label"]
    if inputs.ndim == 4:
      inputs = network.augment(augment_key, inputs, pad, flip)
    if how.rotation:
      inputs, turns = recipe.turn(turn_key, inputs)
    targets = recipe.smooth(labels, net.num_classes, how.label_smoothing)
    if how.mixup:
      inputs, targets = recipe.mix(mix_key, how.mixup, inputs, targets)
    (features, logits), updated = net.apply(
      {"params": params, **extra},
      inputs,
      train=True,
      mutable=["batch_stats"],
      rngs={"dropout": dropout_key},
    )
    loss, metrics = classification.loss_and_metrics(logits, labels)
    if how.label_smoothing or how.mixup:
      loss = recipe.cross_entropy(logits, targets)
    if how.rotation:
      rows = normalize.unit(params["turns"])
      turn_logits = params["scale"] * network.cosines(features, rows)
      (more, _), found = classification.loss_and_metrics(turn_logits, turns)
      loss = (loss[0] + how.rotation * more, loss[1])
      metrics["turn_accuracy"] = found["accuracy"]
    extra = {**extra, **updated}
    if how.ema:
      stats = extra.get("batch_stats", {})
      extra["ema"] = recipe.update_average(extra["ema"], params, stats, how.ema)
    return loss, (metrics, extra)

  return loss_fn


def _read(path):
  """The features in a file; None if it is missing or damaged."""
  try:
    return Features(**disk.named_arrays(path))
  except (DataError, TypeError):
    return None
