"""Every reader of data files, and what it has read."""

import functools
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from chaos import sound_files
from fewshot.classifier import FewShotClassifier
from fewshot.data import registry as sources
from lra_tasks import registry as tasks
from nam_jax.training import fingerprint


class Reader(NamedTuple):
  """How to write sound files, and how to read them.

  `read` returns two digests: of what was read, and of its fingerprint. If the
  first has changed, so must have the second.
  """

  write: Callable[[Path], None]
  read: Callable[[Path], tuple[str, str]]


def _task(name: str, **settings) -> Callable[[Path], tuple[str, str]]:
  def read(folder):
    task = tasks.make_task(name, folder, **settings)
    splits = {
      split: getattr(task, split) for split in ("train", "validation", "test")
    }
    values = (
      value
      for rows in splits.values()
      for i in range(len(rows))
      for value in rows[i].values()
    )
    contents = {name: rows.content for name, rows in splits.items()}
    return _digest(values), _fingerprint(contents)

  return read


def _data(name: str, **settings) -> Callable[[Path], tuple[str, str]]:
  def read(folder):
    splits = sources.load(name, folder, **settings).splits()
    values = (
      value
      for split in splits.values()
      for value in (split.data, split.labels, repr(split.names))
    )
    contents = {name: split.content for name, split in splits.items()}
    return _digest(values), _fingerprint(contents)

  return read


def _classifier(folder: Path) -> tuple[str, str]:
  """A classifier is its own record: it has no fingerprint."""
  loaded = FewShotClassifier.load(folder / "classifier.npz")
  again = folder.with_name("again.npz")
  loaded.save(again)
  digest = _digest([again.read_bytes()])
  return digest, digest


def _digest(values: Iterable[np.ndarray | str | bytes]) -> str:
  digest = hashlib.sha256()
  for value in values:
    if isinstance(value, np.ndarray | np.generic):
      digest.update(repr((value.shape, value.dtype)).encode())
      value = np.asarray(value).tobytes()
    digest.update(value if isinstance(value, bytes) else value.encode())
  return digest.hexdigest()


def _fingerprint(contents) -> str:
  return repr(fingerprint.make(contents)["splits"])


_HELD_OUT = {"num_base_val": 1, "num_base_test": 1}
_SMALL = {"image_size": 8, **_HELD_OUT}

READERS = {
  "listops": Reader(sound_files.listops, _task("listops", max_length=60)),
  "reviews, archive": Reader(
    sound_files.reviews_archive, _task("text", max_length=50)
  ),
  **{
    f"reviews, lines{suffix}": Reader(
      functools.partial(sound_files.reviews_lines, suffix=suffix),
      _task("text", max_length=50),
    )
    for suffix in ("", ".gz", ".xz")
  },
  "retrieval": Reader(sound_files.retrieval, _task("retrieval", max_length=50)),
  "retrieval, pairs": Reader(
    sound_files.retrieval_pairs, _task("retrieval", max_length=50)
  ),
  "image, archive": Reader(sound_files.cifar10, _task("image")),
  "image, npz": Reader(sound_files.cifar10_gray, _task("image")),
  "pathfinder": Reader(sound_files.pathfinder, _task("pathfinder")),
  "pathfinder, npz": Reader(sound_files.pathfinder_npz, _task("pathfinder")),
  "folder": Reader(
    sound_files.image_folder, _data("folder", min_images=2, **_SMALL)
  ),
  "features": Reader(sound_files.features, _data("features", **_HELD_OUT)),
  "mini-imagenet": Reader(
    sound_files.mini_imagenet, _data("mini-imagenet", **_SMALL)
  ),
  "mini-imagenet, tables": Reader(
    sound_files.mini_imagenet_tables, _data("mini-imagenet", **_SMALL)
  ),
  "omniglot": Reader(
    sound_files.omniglot, _data("omniglot", num_val=1, **_SMALL)
  ),
  "omniglot, npz": Reader(
    sound_files.omniglot_npz, _data("omniglot", num_val=1, **_HELD_OUT)
  ),
  "cifar-fs": Reader(sound_files.cifar100, _data("cifar-fs", num_base_val=1)),
  "classifier": Reader(sound_files.classifier, _classifier),
}
