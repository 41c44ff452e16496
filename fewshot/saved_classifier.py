"""The file of a classifier: arrays, and a description as JSON."""

import contextlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import linen as nn
from flax import traverse_util

from data_files import disk
from data_files.errors import DataError
from fewshot import heads
from nam_jax.training import whole_files

_FORMAT = "nam-jax few-shot classifier 2"
# Features of each class in an array of its own; no preprocessing.
_FIRST_FORMAT = "nam-jax few-shot classifier 1"


def write(
  path: str | os.PathLike,
  spec: Mapping[str, Any],
  trees: Mapping[str, Any],
  added: Mapping[str, np.ndarray],
) -> None:
  """Writes the file, completely or not at all.

  Args:
    path: the file.
    spec: what can be written as JSON.
    trees: nested dicts of arrays.
    added: features of the added classes, by name.
  """
  spec = {"format": _FORMAT, **spec, "added": list(added)}
  arrays = traverse_util.flatten_dict(dict(trees), sep="/")
  if added:
    arrays["added/features"] = np.concatenate(list(added.values()))
  arrays["added/counts"] = np.array([len(x) for x in added.values()], np.int64)
  try:
    whole_files.write_npz(path, {"spec": json.dumps(spec), **arrays})
  except OSError as error:
    raise DataError(
      f"cannot save {path}: {error.strerror}; the folder must exist"
    ) from error


@contextlib.contextmanager
def refused(path: Path) -> Iterator[None]:
  """Whatever goes wrong inside means that the file is no classifier."""
  try:
    with disk.about(path):
      try:
        yield
      except DataError:
        raise
      except Exception as error:  # flax has its own for every misfit
        why = "it lacks " if isinstance(error, KeyError) else ""
        raise DataError(why + disk.reason(error)) from error
  except DataError as error:
    raise DataError(f"not a saved classifier: {error}") from error


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
  """Spec, trees and added classes of a file; inside `refused`."""
  arrays = disk.named_arrays(path)
  spec = json.loads(str(arrays.pop("spec")))
  format_name, names = spec.pop("format"), spec.pop("added")
  tree = traverse_util.unflatten_dict(
    {tuple(name.split("/")): array for name, array in arrays.items()}
  )
  stored = tree.pop("added", {})
  if format_name == _FIRST_FORMAT:
    added = {name: stored[str(n)] for n, name in enumerate(names)}
  elif format_name == _FORMAT:
    added = _divided(names, stored)
  else:
    raise ValueError("its format is different")
  return spec, {"base": {}, "head": {}, **tree}, added


def _divided(names, stored):
  """The features of each class, from those of all."""
  counts = stored["counts"]
  if len(names) != len(counts):
    raise ValueError(f"it has {len(names)} names for {len(counts)} classes")
  if not names:
    return {}
  rows, ends = stored["features"], np.cumsum(counts)
  if counts.dtype.kind != "i" or counts.min() < 1 or ends[-1] != len(rows):
    raise ValueError("its counts do not fit its features")
  return dict(zip(names, np.split(rows, ends[:-1]), strict=True))


def check(
  names: Sequence[str],
  spec: Mapping[str, Any],
  trees: Mapping[str, Any],
  added: Mapping[str, np.ndarray],
  shown: np.ndarray,
) -> None:
  """Raises if names, numbers, shapes or types do not fit together."""
  if len(set(names)) < len(names) or {type(n) for n in names} - {str}:
    raise ValueError("its names are not different texts")
  if shown.shape != (len(spec["names"]),):
    raise ValueError("it hides classes that it does not have")
  _check_number(spec, "novel_bias")
  if not isinstance(spec.get("mirror", False), bool):
    raise ValueError("its mirror is neither true nor false")
  for name in ("threshold", "held_out_threshold"):
    if spec.get(name) is not None:
      _check_number(spec, name)
  if not trees["head"] and not spec["names"] and not added:
    return  # nothing is known of the vectors yet
  base = trees["head"]["base"]
  if base.ndim != 2 or len(base) != len(spec["names"]):
    raise ValueError(f"its base weights are {disk.described(base)}")
  for rows in added.values():
    wrong = rows.ndim != 2 or rows.shape[1] != base.shape[1]
    if wrong or not len(rows) or rows.dtype != np.float32:
      raise ValueError(f"features of a class are {disk.described(rows)}")


def _check_number(spec, name):
  if not isinstance(spec[name], float | int) or not math.isfinite(spec[name]):
    raise ValueError(f"its {name} is not a number")


def check_networks(
  network: nn.Module,
  head: nn.Module,
  trees: Mapping[str, Any],
  input_shape: list[int],
) -> None:
  """Raises some error if the weights do not fit the networks.

  They are only traced: sizes from a file need no memory.
  """
  dtype = np.uint8 if len(input_shape) == 3 else np.float32
  image = jax.ShapeDtypeStruct((1, *input_shape), dtype)
  feature, _ = jax.eval_shape(network.apply, trees["base"], image)
  support = jax.ShapeDtypeStruct((1, *feature.shape), np.float32)
  num_base = len(trees["head"]["base"])
  mask, shown = (
    jax.ShapeDtypeStruct(shape, bool) for shape in ((1, 1), (num_base,))
  )
  episodes = heads.EpisodeNetwork(head, num_base)
  variables = {"params": trees["head"]}
  jax.eval_shape(episodes.apply, variables, support, mask, feature, shown)
