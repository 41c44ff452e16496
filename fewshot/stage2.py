"""Stage 2: a head learns from episodes; the features do not change."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fewshot import episodes, evaluate, heads
from fewshot.config import Experiment
from fewshot.data.dataset import Split
from fewshot.stage1 import Features
from nam_jax import training
from nam_jax.training import classification
from nam_jax.training.state import InitFn
from nam_jax.training.step import LossFn


class TrainedHead(NamedTuple):
  """A head after stage 2, for one number of supports."""

  network: heads.EpisodeNetwork
  params: dict[str, Any]
  novel_bias: float  # added to the logits of novel classes
  seconds: float  # training time


def run(
  experiment: Experiment,
  features: Features,
  drawn: dict[str, episodes.Episodes],
  label: str,
  num_shot: int,
  *,
  train: bool,
) -> TrainedHead:
  """Trains the head `label` of the config, or loads it if already trained.

  The best state has the highest accuracy in the episodes drawn["val"].
  """
  config, base_train = experiment.config, experiment.dataset.base_train
  entry, dropout_rate = config.heads[label], config.feature_dropout_rate
  net = heads.EpisodeNetwork(
    experiment.heads[label], len(base_train.names), dropout_rate
  )
  params = initial_base(entry["kind"], features, base_train)
  seconds = 0.0

  def measure(params, novel_bias):
    head = TrainedHead(net, params, novel_bias, 0.0)
    return accuracies(head, features, drawn, num_shot, "val")

  if entry["kind"] not in heads.UNTUNED:
    stage = config.make_stage2(label, num_shot)
    folder = experiment.workdir / f"{label}-{num_shot}shot"
    init_fn = make_init_fn(net, params, num_shot)
    if train:
      size = config.train_size(num_shot)
      fitted = training.fit(
        stage,
        folder,
        init_fn,
        make_loss_fn(net),
        make_batch_fn(features, base_train, size, stage.batch_size, stage.seed),
        lambda state: evaluate.means(measure(state.params, 0.0)),
      )
    else:
      fitted = training.load(stage, folder, init_fn)
    params, seconds = fitted.best.params, fitted.seconds
  novel_bias = 0.0
  if entry.get("calibrate"):
    novel_bias = evaluate.calibrate(
      lambda bias: measure(params, bias), float(params["scale"])
    )
  return TrainedHead(net, params, novel_bias, seconds)


def accuracies(
  head: TrainedHead,
  features: Features,
  drawn: dict[str, episodes.Episodes],
  num_shot: int,
  split: str = "test",
) -> evaluate.Accuracies:
  """Accuracies on the episodes of a split, with any number of supports."""
  return evaluate.evaluate(
    head.network,
    head.params,
    getattr(features, split),
    getattr(features, f"base_{split}"),
    drawn[split],
    num_shot,
    head.novel_bias,
  )


def initial_base(
  kind: str, features: Features, base_train: Split
) -> dict[str, Any]:
  """The base weights and scale that a kind of head starts from."""
  if kind != "prototypes":
    return {"base": features.base, "scale": features.scale}
  rows_by_class = base_train.rows_by_class()
  means = [features.base_train[rows].mean(axis=0) for rows in rows_by_class]
  return {"base": np.stack(means), "scale": np.float32(1.0)}


def make_init_fn(
  net: heads.EpisodeNetwork, start: dict[str, Any], num_shot: int
) -> InitFn:
  """key -> variables, with those of `initial_base` among the parameters."""
  c, d = start["base"].shape

  def init_fn(key: jax.Array) -> dict[str, Any]:
    variables = net.init(
      key,
      jnp.zeros((1, num_shot, d)),
      jnp.ones((1, num_shot), bool),
      jnp.zeros((1, d)),
      jnp.ones(c, bool),
    )
    params = jax.tree.map(jnp.asarray, start)
    return {"params": {**variables["params"], **params}}

  return init_fn


def make_loss_fn(net: heads.EpisodeNetwork) -> LossFn:
  """Cross-entropy of all queries of the episodes in a batch."""

  def one(params, support, query, base_mask, key):
    return net.apply(
      {"params": params},
      support,
      jnp.ones(support.shape[:2], bool),
      query,
      base_mask,
      train=True,
      rngs={"dropout": key},
    )

  def loss_fn(params, extra, batch, key):
    keys = jax.random.split(key, len(batch["label"]))
    names = ("support", "query", "base_mask")
    logits = jax.vmap(one, in_axes=(None, 0, 0, 0, 0))(
      params, *(batch[name] for name in names), keys
    )
    loss, metrics = classification.loss_and_metrics(logits, batch["label"])
    return loss, (metrics, extra)

  return loss_fn


def make_batch_fn(
  features: Features,
  base_train: Split,
  size: episodes.Size,
  batch_size: int,
  seed: int,
) -> Callable[[int], dict[str, np.ndarray]]:
  """step -> features and labels of `batch_size` episodes."""
  table, num_base = episodes.by_class(base_train), len(base_train.names)

  def batch_fn(step: int) -> dict[str, np.ndarray]:
    drawn = episodes.sample_training(seed, step, table, size, batch_size)
    e, n, q = drawn.query.shape
    base_mask = np.ones((e, num_base), bool)
    np.put_along_axis(base_mask, drawn.classes, False, axis=1)
    labels = np.repeat(num_base + np.arange(n, dtype=np.int32), q)
    queries = np.concatenate(
      [drawn.query.reshape(e, -1), drawn.base_query], axis=1
    )
    return {
      "support": features.base_train[drawn.support],
      "query": features.base_train[queries],
      "base_mask": base_mask,
      "label": np.concatenate(
        [np.broadcast_to(labels, (e, n * q)), drawn.base_label], axis=1
      ),
    }

  return batch_fn
