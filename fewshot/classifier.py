"""A classifier that learns a class from a few examples, and forgets it again.

  classifier = FewShotClassifier.load("classifier.npz")  # or from_embeddings()
  classifier.add("zebra", "photos/zebra")  # a folder, files, arrays, vectors
  classifier.predict("unknown.jpg")  # ["zebra"]
  classifier.calibrate()  # from now on, None answers "none of these"
  classifier.remove("zebra")
  classifier.save("mine.npz")

Nothing is trained: the head writes the features of the examples to the weights
of the classifier, each a write WR of the memory. The features of each class are
kept, so a class that is removed leaves no trace. `train_fewshot.py` writes
classifier.npz for every head; `from_embeddings` needs no training at all.
"""

import copy
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from data_files.errors import excerpt
from fewshot import (
  backbones,
  class_table,
  heads,
  network,
  preprocess,
  saved_classifier,
)
from fewshot import inputs as inputs_lib
from fewshot import unknown as unknown_lib

Embed = Callable[[Any], Any]
_ROWS_AT_ONCE = 32


class FewShotClassifier:
  """Names the class of an image: a base class or one that was added."""

  def __init__(
    self,
    spec: Mapping[str, Any],
    base_variables: Mapping[str, Any],
    head_params: Mapping[str, Any],
    embed: Embed | None = None,
  ):
    """Builds the networks from what was trained.

    Args:
      spec: what to build: `backbone` and `head`, each a dict with the
        arguments of `make_backbone` and `make_head`, the backbone None if
        inputs are vectors; the `input_shape` of one input; the `names` of the
        base classes; the `novel_bias` of the logits; optionally `mirror`, as
        for `make_extract`, `preprocess`, a dict with the fields of
        `Preprocess`, the `threshold` of scores below which an input is none of
        the classes, and the `held_out_threshold` that was found with classes
        held out of training.
      base_variables: variables of the `BaseNetwork`.
      head_params: parameters of the `EpisodeNetwork`; none as long as nothing
        is known of the vectors.
      embed: what makes vectors from images, texts or whatever is passed to
        `add` and `predict`, instead of a backbone.
    """
    self._spec = copy.deepcopy(dict(spec))
    self._base_variables = jax.tree.map(jnp.asarray, dict(base_variables))
    self._head_params = jax.tree.map(jnp.asarray, dict(head_params))
    self._added: dict[str, np.ndarray] = {}  # name -> features [k d]
    self._shown = np.ones(len(spec["names"]), bool)  # False: removed
    self._table: class_table.ClassTable | None = None
    self._embed = embed
    self._preprocess = self._make_preprocess()
    self._head = heads.make_head(**spec["head"])
    if spec["backbone"] is not None:
      backbone = backbones.make_backbone(**spec["backbone"])
      self._network = network.BaseNetwork(backbone, len(spec["names"]))
      self._extract = network.make_extract(
        self._network, _ROWS_AT_ONCE, mirror=spec.get("mirror", False)
      )

  @classmethod
  def from_embeddings(
    cls,
    base_classes: Mapping[str, Any] | None = None,
    *,
    embed: Embed | None = None,
    preprocess: "preprocess.Preprocess | None" = None,
    erase: float = 0.0,
  ) -> "FewShotClassifier":
    """A classifier of vectors from anywhere, without any training.

    Args:
      base_classes: the first classes: name -> vectors [k d], or what `embed`
        takes. None: none yet.
      embed: a function from a list, or an array of images, to vectors [n d].
      preprocess: how files and PIL images become the array that `embed` gets.
      erase: how much of what they have in common with later classes the
        base classes lose, 0 to 1. If it is not 0, the base classes stay as
        they are given here.
    """
    if not 0 <= erase <= 1:
      raise ValueError(f"erase must lie in [0, 1], got {erase}")
    how = {"kind": "fixed", "erase": erase} if erase else {"kind": "cosine"}
    spec = {
      "backbone": None,
      "head": how,
      "input_shape": None,
      "names": [],
      "novel_bias": 0.0,
      "preprocess": preprocess and preprocess.__dict__,
    }
    made = cls(spec, {}, {}, embed)
    for name, examples in (base_classes or {}).items():
      made.add(name, examples)
    if erase and made._added:
      rows = [heads.mean_direction(x) for x in made._added.values()]
      made._head_params["base"] = jnp.stack(rows)
      made._spec["names"], made._added = list(made._added), {}
      made._shown, made._table = np.ones(len(rows), bool), None
    return made

  @property
  def names(self) -> tuple[str, ...]:
    """All classes: the base classes, then the added ones."""
    return (*self._base_names(), *self._added)

  def __len__(self) -> int:
    return len(self.names)

  @property
  def threshold(self) -> float | None:
    """Scores below it are none of the classes; None: there is always one."""
    return self._spec.get("threshold")

  @threshold.setter
  def threshold(self, value: float | None) -> None:
    if value is not None and not math.isfinite(value):
      raise ValueError(f"the threshold must be a finite number, got {value}")
    self._spec["threshold"] = value if value is None else float(value)

  def add(self, name: str, examples: Any) -> None:
    """Learns a class, or more examples of a class that was added.

    Args:
      name: of the class.
      examples: a file, a folder, a PIL image or a list of them; images, uint8
        [k h w c]; or, without a backbone, vectors [k d] or what `embed` takes.
    """
    inputs_lib.check_name(name)
    if name in self._base_names():
      raise ValueError(
        f"{name!r:.60} is a base class, which learns no further examples"
      )
    features = self._features(examples)
    if name in self._added:
      features = np.concatenate([self._added[name], features])
    self._added[name] = features
    if self._table and not self._table.put(name, features):
      self._table = None

  def remove(self, name: str) -> None:
    """Forgets a class."""
    self._check_known(name)
    if name in self._added:
      del self._added[name]
      if self._table and not self._table.drop(name):
        self._table = None
    else:
      self._shown[self._place(name)] = False
      self._table = None

  def rename(self, old: str, new: str) -> None:
    """Gives a class another name; its place among `names` stays."""
    self._check_known(old)
    inputs_lib.check_name(new)
    if new in self.names:
      raise ValueError(f"there is already a class {new!r:.60}")
    if old in self._added:
      self._added = {
        new if name == old else name: rows for name, rows in self._added.items()
      }
      if self._table:
        self._table.rename(old, new)
    else:
      self._spec["names"][self._place(old)] = new

  def predict(self, inputs: Any, top: int | None = None) -> list:
    """The most likely class of each input; None if it is none of them.

    None is only answered with a `threshold`, which `calibrate` sets.

    Args:
      inputs: like the examples of `add`.
      top: with a number, so many pairs (name, probability) for each input, the
        most likely first; none for an input that is none of the classes.
    """
    if top is not None and (type(top) is not int or top < 1):
      raise ValueError(f"top must be a positive integer, got {top!r}")
    names, logits = self.names, self._logits(self._features(inputs))
    least = -math.inf if self.threshold is None else self.threshold
    is_known = logits.max(axis=1) / self._scale() >= least
    if top is None:
      best = zip(logits.argmax(axis=1), is_known, strict=True)
      return [names[i] if known else None for i, known in best]
    probabilities = _softmax(logits)
    order = np.argsort(-probabilities, axis=1, kind="stable")[:, :top]
    return [
      [(names[i], float(row[i])) for i in best if known]
      for row, best, known in zip(probabilities, order, is_known, strict=True)
    ]

  def probabilities(self, inputs: Any) -> np.ndarray:
    """Probabilities [n, classes], in the order of `names`."""
    return _softmax(self._logits(self._features(inputs)))

  def calibrate(
    self, unknown: Any = None, recall: float = unknown_lib.RECALL
  ) -> unknown_lib.Calibration:
    """Sets the threshold so that a share of known inputs is accepted.

    Every example that was added is left out in turn and scored: with the
    others of its class, as a known input, and without its class, as an unknown
    one. Without classes of two examples, the threshold is the one that
    training found with held-out classes, if there is one.

    Args:
      unknown: inputs that are none of the classes, to be scored instead of the
        examples whose class was left out.
      recall: share of known inputs to accept.
    """
    known, others = unknown_lib.leave_one_out(self._added, self._left_out)
    self._table = None
    source = "leave-one-out"
    if unknown is not None:
      logits = self._logits(self._features(unknown))
      others, source = logits.max(axis=1) / self._scale(), "unknown inputs"
    if len(known) and len(others):
      found = unknown_lib.calibrate(known, others, recall, source)
    else:
      found = self._calibrated_in_training(recall)
    self.threshold = found.threshold
    return found

  def save(self, path: str | os.PathLike) -> None:
    """Writes one .npz file, completely or not at all."""
    trees = {"base": self._base_variables, "head": self._head_params}
    spec = {**self._spec, "shown": self._shown.tolist()}
    saved_classifier.write(path, spec, trees, self._added)

  @classmethod
  def load(
    cls,
    path: str | os.PathLike,
    embed: Embed | None = None,
    allow_import: bool = False,
  ) -> "FewShotClassifier":
    """Reads what `save` wrote; raises `DataError` for anything else.

    Args:
      path: the file.
      embed: the function, if there was one, since it is not saved.
      allow_import: whether the file may name a backbone that is not ours,
        which is imported.
    """
    path = Path(path)
    with saved_classifier.refused(path):
      spec, trees, added = saved_classifier.read(path)
      name = (spec["backbone"] or {}).get("name", "")
      if backbones.is_foreign(name) and not allow_import:
        raise ValueError(
          f"it imports {name!r:.60}; if you trust it, pass allow_import=True"
        )
      shown = np.array(spec.pop("shown", [True] * len(spec["names"])), bool)
      made = cls(spec, trees["base"], trees["head"], embed)
      made._added, made._shown = added, shown
      saved_classifier.check(made.names, spec, trees, added, shown)
      if spec["backbone"] is not None:
        saved_classifier.check_networks(
          made._network, made._head, trees, spec["input_shape"]
        )
    return made

  def _left_out(self, name, example, others):
    """The scores of an example with the others of its class, and without."""
    added = {**self._added, name: others}
    if self._table is None or not self._table.put(name, others):
      self._table = self._make_table(added)
    logits = self._logits(example)[0] / self._scale()
    self._table.put(name, self._added[name])
    without = np.delete(logits, self.names.index(name))
    return logits.max(), without.max(initial=-np.inf)

  def _calibrated_in_training(self, recall):
    threshold = self._spec.get("held_out_threshold")
    if threshold is None or recall != unknown_lib.RECALL:
      raise ValueError(
        "calibrating needs a class with two or more examples, and another class"
      )
    return unknown_lib.Calibration(
      threshold, recall, math.nan, math.nan, "held-out classes of the training"
    )

  def _scale(self):
    return abs(float(self._head_params["scale"])) or 1.0

  def _make_preprocess(self):
    """As saved or, before there was such a setting, from the input's shape."""
    if "preprocess" in self._spec:
      fields = self._spec["preprocess"]
      return preprocess.Preprocess(**fields) if fields else None
    return preprocess.of_shape(self._spec["input_shape"])

  def _base_names(self):
    base = zip(self._spec["names"], self._shown, strict=True)
    return [name for name, is_shown in base if is_shown]

  def _place(self, name):
    """The number of a base class, among those that are there."""
    places = np.flatnonzero(self._shown)
    return places[self._base_names().index(name)]

  def _check_known(self, name):
    if name not in self.names:
      known = excerpt(", ".join(self._added) or "none")
      raise ValueError(f"no class {name!r:.60}; classes added: {known}")

  def _logits(self, features):
    """Logits [n, classes] with the bias, in the order of `names`."""
    if not self.names:
      raise ValueError("there are no classes yet; add one first")
    if self._table is None:
      self._table = self._make_table(self._added)
    logits = self._table.logits(features, tuple(self._added))
    logits[:, len(self._shown) :] += np.float32(self._spec["novel_bias"])
    is_added = np.ones(len(self._added), bool)
    return logits[:, np.concatenate([self._shown, is_added])]

  def _make_table(self, added):
    kind, shown = self._spec["head"]["kind"], self._shown.copy()
    return class_table.ClassTable(
      kind, self._head, self._head_params, shown, added
    )

  def _features(self, inputs):
    """Features [n d] of whatever `add` and `predict` accept."""
    is_array = hasattr(inputs, "dtype")
    if not is_array and self._preprocess:
      inputs = self._preprocess.read(inputs)
    if self._spec["backbone"] is not None:
      images = inputs_lib.checked_images(inputs, self._spec["input_shape"])
      return self._extract(self._base_variables, images)
    is_vectors = is_array and np.ndim(inputs) == 2
    if self._embed is not None and not is_vectors:
      inputs = self._embed(inputs)
    rows = inputs_lib.checked_vectors(inputs, self._spec["input_shape"])
    if not self._head_params:
      self._learn_size(rows.shape[1:])
    return rows

  def _learn_size(self, shape):
    """The first vectors decide how long all are."""
    self._spec["input_shape"] = list(shape)
    self._head_params = {
      "base": jnp.zeros((0, *shape)),
      "scale": jnp.asarray(network.SCALE),
    }


def _softmax(logits):
  shares = np.exp(logits - logits.max(axis=1, keepdims=True))
  return shares / shares.sum(axis=1, keepdims=True)
