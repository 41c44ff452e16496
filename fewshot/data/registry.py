"""All data by name."""

import functools
import os
from collections.abc import Callable

from data_files import sources
from fewshot.data import (
  cifar,
  features,
  folder,
  glyphs,
  mini_imagenet,
  omniglot,
)
from fewshot.data.dataset import Dataset

SOURCES: dict[str, Callable[..., Dataset]] = {
  "glyphs": glyphs.load,
  "omniglot": omniglot.load,
  "cifar-fs": functools.partial(cifar.load, "cifar-fs"),
  "fc100": functools.partial(cifar.load, "fc100"),
  "mini-imagenet": mini_imagenet.load,
  "folder": folder.load,
  "features": features.load,
}


def load(
  source: str, data_dir: str | os.PathLike | None = None, **settings
) -> Dataset:
  """The data with this name.

  Args:
    source: one of SOURCES.
    data_dir: the folder with its files; the source's module says which. None
      for glyphs, or to look where TFDS keeps its data.
    **settings: keyword arguments of the source's own load.
  """
  return sources.call("data", SOURCES, source, data_dir, settings)
