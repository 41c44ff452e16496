"""Stage 2: a head learns from episodes; the features do not change."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fewshot import episodes, evaluate, heads
from fewshot.classifier import FewShotClassifier
from fewshot.config import Experiment
from fewshot.stage1 import Features
from nam_jax import training
from nam_jax.training import classification


class HeadRun:
  """One head for one number of supports.

  Attributes:
    kind: a name of `heads.HEADS`.
    is_reference: the tuned cosine classifier, which others are compared with.
    workdir: of the run.
    config: of stage 2.
    params: the best ones, after `load`.
    novel_bias: added to the logits of novel classes; set by `load`.
  """

  def __init__(
    self,
    experiment: Experiment,
    features: Features,
    drawn: dict[str, episodes.Episodes],
    label: str,
    num_shot: int,
  ):
    self._experiment, self._features = experiment, features
    self._episodes = drawn
    entry = experiment.config.heads[label]
    self.kind, self._calibrate = entry["kind"], entry.get("calibrate", False)
    self.is_reference = self.kind == "cosine_tuned" and not self._calibrate
    self._num_base = len(experiment.dataset.base_train.names)
    self._num_shot = num_shot
    self._network = heads.EpisodeNetwork(
      experiment.heads[label],
      self._num_base,
      dropout_rate=experiment.config.feature_dropout_rate,
    )
    self.config = experiment.stage2(label, num_shot)
    self.workdir = experiment.workdir / f"{label}-{num_shot}shot"
    self.params, self.novel_bias = None, 0.0
    self._start = self._make_start()

  def train(self) -> None:
    """Trains, or goes on training; best by novel accuracy."""
    if self.kind in heads.UNTUNED:
      return

    def measure(state):
      accuracies = self._evaluate(state.params, "val", self._num_shot, 0.0)
      return evaluate.means(accuracies)

    training.fit(self.config, self.workdir, *self.functions(), measure)

  def functions(self) -> tuple[Callable, Callable, Callable]:
    """init_fn, loss_fn and batch_fn of the training; see `training.fit`."""
    return self._init_fn, self._make_loss_fn(), self._make_batch_fn()

  def load(self) -> None:
    """Reads the best parameters; calibrates them where that is asked for."""
    if self.kind in heads.UNTUNED:
      self.params = self._start
    else:
      state = training.load_best(self.config, self.workdir, self._init_fn)
      self.params = state.params
    if self._calibrate:
      shot = self._num_shot
      self.novel_bias = evaluate.calibrate(
        lambda bias: self._evaluate(self.params, "val", shot, bias),
        float(self.params["scale"]),
      )

  def test(self, num_shot: int) -> evaluate.Accuracies:
    """Accuracies on the test's episodes, with any number of supports."""
    return self._evaluate(self.params, "test", num_shot, self.novel_bias)

  def save_classifier(self, base_variables: Mapping[str, Any]) -> None:
    """Writes classifier.npz; see `fewshot.classifier`."""
    config, dataset = self._experiment.config, self._experiment.dataset
    head = dict(self.config.settings["head"])
    head.pop("calibrate", None)
    spec = {
      "backbone": {"name": config.backbone, **config.backbone_kwargs},
      "head": head,
      "input_shape": list(dataset.base_train.data.shape[1:]),
      "names": list(dataset.base_train.names),
      "novel_bias": self.novel_bias,
    }
    self.workdir.mkdir(parents=True, exist_ok=True)
    FewShotClassifier(spec, base_variables, self.params).save(
      self.workdir / "classifier.npz"
    )

  def seconds(self) -> float:
    """Duration of the training."""
    if self.kind in heads.UNTUNED:
      return 0.0
    return training.read_metrics(self.workdir)[-1]["seconds"]

  def _evaluate(self, params, split, num_shot, novel_bias):
    tables = (getattr(self._features, s) for s in (split, f"base_{split}"))
    return evaluate.evaluate(
      self._network,
      params,
      *tables,
      self._episodes[split],
      num_shot,
      novel_bias,
    )

  def _make_start(self) -> dict[str, Any]:
    """What stage 1 has learned, in the head's terms."""
    if self.kind != "prototypes":
      return {"base": self._features.base, "scale": self._features.scale}
    by_class = self._experiment.dataset.base_train.rows_by_class()
    means = [self._features.base_train[rows].mean(axis=0) for rows in by_class]
    return {"base": np.stack(means), "scale": np.float32(1.0)}

  def _init_fn(self, key):
    d = self._features.base.shape[1]
    variables = self._network.init(
      key,
      jnp.zeros((1, self._num_shot, d)),
      jnp.ones((1, self._num_shot), bool),
      jnp.zeros((1, d)),
      jnp.ones(self._num_base, bool),
    )
    start = jax.tree.map(jnp.asarray, self._start)
    return {"params": {**variables["params"], **start}}

  def _make_loss_fn(self):
    def one(params, support, query, base_mask, key):
      return self._network.apply(
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

  def _make_batch_fn(self):
    """step -> the features and labels of `batch_size` episodes."""
    experiment, features = self._experiment, self._features.base_train
    table = episodes.by_class(experiment.dataset.base_train)
    size = experiment.config.train_size(self._num_shot)

    def batch_fn(step: int) -> dict[str, np.ndarray]:
      drawn = episodes.sample_training(
        self.config.seed, step, table, size, self.config.batch_size
      )
      e, n, q = drawn.query.shape
      base_mask = np.ones((e, self._num_base), bool)
      np.put_along_axis(base_mask, drawn.classes, False, axis=1)
      labels = np.repeat(self._num_base + np.arange(n, dtype=np.int32), q)
      queries = np.concatenate(
        [drawn.query.reshape(e, -1), drawn.base_query], axis=1
      )
      return {
        "support": features[drawn.support],
        "query": features[queries],
        "base_mask": base_mask,
        "label": np.concatenate(
          [np.broadcast_to(labels, (e, n * q)), drawn.base_label], axis=1
        ),
      }

    return batch_fn
