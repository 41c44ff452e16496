"""Calls one of several readers by name, and checks its settings."""

import inspect
import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from data_files.errors import DataError
from nam_jax import spelling


def call(
  kind: str,
  readers: Mapping[str, Callable],
  name: str,
  data_dir: str | os.PathLike | None,
  settings: Mapping[str, Any],
  more: Sequence[str] = (),
) -> Any:
  """readers[name](data_dir, **settings), with "~" expanded in data_dir.

  Args:
    kind: what the readers read, for errors.
    readers: by name; their settings are keyword-only arguments.
    name: one of readers.
    data_dir: the folder with the files.
    settings: keyword arguments of the reader.
    more: settings that the reader takes as `**kwargs`.
  """
  if name not in readers:
    raise DataError(spelling.unknown(kind, name, readers))
  parameters = inspect.signature(readers[name]).parameters.values()
  known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
  known += [setting for setting in more if setting not in known]
  for setting in settings:
    if setting not in known:
      raise DataError(
        spelling.unknown(f"setting of {name}", setting, known or ["none"])
      )
  if data_dir is not None:
    data_dir = pathlib.Path(os.path.expanduser(data_dir))
    if not os.path.isdir(data_dir):
      raise DataError(f"data_dir {data_dir}: no such folder")
  return readers[name](data_dir, **settings)
