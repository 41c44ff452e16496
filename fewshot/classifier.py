"""A classifier that learns a class from a few images, and forgets it again.

  classifier = FewShotClassifier.load("classifier.npz")
  classifier.add_class("zebra", images)  # uint8 [k h w c]
  classifier.predict(more_images)  # ["zebra", ...]
  classifier.remove_class("zebra")
  classifier.save("mine.npz")

Nothing is trained: the head writes the features of the images to the weights of
the classifier. Each class's features are kept separately, so a removed class
leaves no trace. `train_fewshot.py` writes classifier.npz for every head.
"""

import copy
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from data_files import disk
from data_files.errors import DataError
from fewshot import backbones, heads, network
from nam_jax.training import whole_files

_FORMAT = "nam-jax few-shot classifier 1"
_ROWS_AT_ONCE = 32


class FewShotClassifier:
  """Names the class of an image: a base class or one that was added."""

  def __init__(
    self,
    spec: Mapping[str, Any],
    base_variables: Mapping[str, Any],
    head_params: Mapping[str, Any],
  ):
    """Builds the networks from what was trained.

    Args:
      spec: what to build: `backbone` and `head`, each a dict with the
        arguments of `make_backbone` and `make_head`; the `input_shape` of one
        image; the `names` of the base classes; the `novel_bias` of the logits.
      base_variables: variables of the `BaseNetwork`.
      head_params: parameters of the `EpisodeNetwork`.
    """
    self._spec = copy.deepcopy(dict(spec))
    self._base_variables = jax.tree.map(jnp.asarray, dict(base_variables))
    self._head_params = jax.tree.map(jnp.asarray, dict(head_params))
    self._added: dict[str, np.ndarray] = {}  # name -> features [k d]
    num_base = len(spec["names"])
    backbone = backbones.make_backbone(**spec["backbone"])
    self._network = network.BaseNetwork(backbone, num_base)
    self._extract = network.make_extract(self._network, _ROWS_AT_ONCE)
    head = heads.make_head(**spec["head"])
    self._logits = jax.jit(heads.EpisodeNetwork(head, num_base).apply)

  @property
  def names(self) -> tuple[str, ...]:
    """All classes: the base classes, then the added ones."""
    return (*self._spec["names"], *self._added)

  def add_class(self, name: str, images: np.ndarray) -> None:
    """Learns a class from images, uint8 [k h w c] (or features [k d])."""
    if name in self.names:
      raise ValueError(f"there is already a class {name!r}")
    self._added[name] = self._features(images)

  def remove_class(self, name: str) -> None:
    """Forgets a class that was added."""
    if name not in self._added:
      known = ", ".join(self._added) or "none"
      raise ValueError(f"no class {name!r} was added; added: {known}")
    del self._added[name]

  def predict(self, images: np.ndarray) -> list[str]:
    """The most likely class of each image."""
    names = self.names
    return [names[i] for i in self.probabilities(images).argmax(axis=1)]

  def probabilities(self, images: np.ndarray) -> np.ndarray:
    """Probabilities [n, classes], in the order of `names`."""
    features = self._features(images)
    num_base, num_novel = len(self._spec["names"]), len(self._added)
    most = max(map(len, self._added.values()), default=1)
    support = np.zeros((num_novel, most, features.shape[1]), np.float32)
    mask = np.zeros((num_novel, most), bool)
    for n, rows in enumerate(self._added.values()):
      support[n, : len(rows)], mask[n, : len(rows)] = rows, True
    shown = np.ones(num_base, bool)
    variables = {"params": self._head_params}
    logits = self._logits(variables, support, mask, features, shown)
    bias = np.repeat([0.0, self._spec["novel_bias"]], [num_base, num_novel])
    return np.asarray(jax.nn.softmax(logits + bias.astype(np.float32)[None]))

  def save(self, path: str | os.PathLike) -> None:
    """Writes one .npz file, completely or not at all."""
    spec = {"format": _FORMAT, **self._spec, "added": list(self._added)}
    trees = {"base": self._base_variables, "head": self._head_params}
    arrays = traverse_util.flatten_dict(trees, sep="/")
    for n, rows in enumerate(self._added.values()):
      arrays[f"added/{n}"] = rows
    try:
      whole_files.write_npz(path, {"spec": json.dumps(spec), **arrays})
    except OSError as error:
      raise DataError(
        f"cannot save {path}: {error.strerror}; the folder must exist"
      ) from error

  @classmethod
  def load(cls, path: str | os.PathLike) -> "FewShotClassifier":
    """Reads what `save` wrote; raises `DataError` for anything else."""
    path = Path(path)
    try:
      with disk.about(path):
        return cls._restored(disk.named_arrays(path))
    except DataError as error:
      raise DataError(f"not a saved classifier: {error}") from error

  @classmethod
  def _restored(cls, arrays):
    try:
      spec = json.loads(str(arrays.pop("spec")))
      if spec.pop("format") != _FORMAT:
        raise ValueError("its format is different")
      added = spec.pop("added")
      tree = traverse_util.unflatten_dict(
        {tuple(name.split("/")): array for name, array in arrays.items()}
      )
      classifier = cls(spec, tree["base"], tree["head"])
      classifier._added = {
        name: tree["added"][str(n)] for n, name in enumerate(added)
      }
      classifier._check()
    except Exception as error:  # flax has its own for every misfit
      why = "it lacks " if isinstance(error, KeyError) else ""
      raise DataError(why + disk.reason(error)) from error
    return classifier

  def _check(self):
    """Raises some error if names, shapes or types do not fit together.

    The networks are only traced: sizes from a file need no memory.
    """
    names, bias = self.names, self._spec["novel_bias"]
    if len(set(names)) < len(names) or {type(name) for name in names} != {str}:
      raise ValueError("its names are not different texts")
    if not isinstance(bias, float | int) or not math.isfinite(bias):
      raise ValueError("its novel_bias is not a number")
    shape = (1, *self._spec["input_shape"])
    image = jax.ShapeDtypeStruct(shape, self._input_dtype())
    feature, _ = jax.eval_shape(
      self._network.apply, self._base_variables, image
    )
    support = jax.ShapeDtypeStruct((1, *feature.shape), np.float32)
    mask, shown = (
      jax.ShapeDtypeStruct(shape, bool)
      for shape in ((1, 1), (len(self._spec["names"]),))
    )
    jax.eval_shape(
      self._logits, {"params": self._head_params}, support, mask, feature, shown
    )
    for rows in self._added.values():
      wrong = rows.ndim != 2 or rows.shape[1:] != feature.shape[1:]
      if wrong or not len(rows) or rows.dtype != np.float32:
        raise ValueError(f"features of a class are {disk.described(rows)}")

  def _input_dtype(self):
    return np.uint8 if len(self._spec["input_shape"]) == 3 else np.float32

  def _features(self, images):
    expected = tuple(self._spec["input_shape"])
    images, dtype = np.asarray(images), self._input_dtype()
    if images.shape[1:] != expected or images.dtype != dtype:
      raise ValueError(
        f"expected {np.dtype(dtype)} [n, {', '.join(map(str, expected))}],"
        f" got {images.dtype} {list(images.shape)}"
      )
    if not len(images):
      raise ValueError("expected at least one image, got none")
    return self._extract(self._base_variables, images)
