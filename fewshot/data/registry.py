"""All data by name."""

import difflib
import functools
import inspect
import os
import pathlib
from collections.abc import Callable

from data_files.errors import DataError
from fewshot.data import (
  cifar,
  features,
  folder,
  glyphs,
  mini_imagenet,
  omniglot,
)
from fewshot.data.dataset import Dataset

# What reads files takes the folder first; settings are keywords.
SOURCES: dict[str, Callable[..., Dataset]] = {
  "glyphs": glyphs.load,
  "omniglot": omniglot.load,
  "cifar-fs": functools.partial(cifar.load, "cifar-fs"),
  "fc100": functools.partial(cifar.load, "fc100"),
  "mini-imagenet": mini_imagenet.load,
  "folder": folder.load,
  "features": features.load,
}
WITHOUT_FILES = ("glyphs",)


def load(
  source: str, data_dir: str | os.PathLike | None = None, **settings
) -> Dataset:
  """The data of this name.

  Args:
    source: one of SOURCES.
    data_dir: where its files are; the source's module tells which. Glyphs have
      no files.
    **settings: keyword arguments of the source's own load.
  """
  if source not in SOURCES:
    (nearest,) = difflib.get_close_matches(source, SOURCES, n=1, cutoff=0)
    raise DataError(
      f"no data {source!r}, the nearest is {nearest!r};"
      f" all: {', '.join(SOURCES)}"
    )
  parameters = inspect.signature(SOURCES[source]).parameters.values()
  known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
  unknown = [setting for setting in settings if setting not in known]
  if unknown:
    raise DataError(
      f"{source} does not take {', '.join(unknown)}; it takes"
      f" {', '.join(known)}"
    )
  if source in WITHOUT_FILES:
    if data_dir is not None:
      raise DataError(f"{source} has no files, so leave out data_dir")
    return SOURCES[source](**settings)
  if data_dir is not None:
    data_dir = pathlib.Path(os.path.expanduser(data_dir))
    if not data_dir.is_dir():
      raise DataError(f"data_dir {data_dir}: no such folder")
  return SOURCES[source](data_dir, **settings)
