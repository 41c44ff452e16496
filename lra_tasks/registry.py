"""All tasks by their names in the benchmark."""

import dataclasses
import difflib
import functools
import inspect
import os
import pathlib
from collections.abc import Callable

from data_files import errors
from lra_tasks import (
  image,
  listops,
  listops_trees,
  pathfinder,
  retrieval,
  task,
  text,
)

TASKS: dict[str, Callable[..., task.Task]] = {
  "basic": listops.make_task,
  "imdb_reviews": text.make_task,
  "aan": retrieval.make_task,
  "cifar10": image.make_task,
  **{
    name: functools.partial(pathfinder.make_task, name)
    for name in pathfinder.NAMES
  },
}


def make_task(
  name: str, data_dir: str | os.PathLike | None, **settings
) -> task.Task:
  """The task of this name.

  Args:
    name: one of TASKS.
    data_dir: where its files are; each task's module tells which. None for the
      tasks that can do without.
    **settings: keyword arguments of the task's own make_task.
  """
  if name not in TASKS:
    (nearest,) = difflib.get_close_matches(name, TASKS, n=1, cutoff=0)
    raise ValueError(
      f"no task {name!r}, the nearest is {nearest!r}; all: {', '.join(TASKS)}"
    )
  known = _settings(name)
  unknown = [setting for setting in settings if setting not in known]
  if unknown:
    raise ValueError(
      f"task {name!r} does not take {', '.join(unknown)}; it takes"
      f" {', '.join(known) or 'no settings'}"
    )
  if data_dir is not None:
    data_dir = pathlib.Path(os.path.expanduser(data_dir))
    if not data_dir.is_dir():
      raise errors.DataError(f"data_dir {data_dir}: no such folder")
  return TASKS[name](data_dir, **settings)


def _settings(name: str) -> list[str]:
  parameters = inspect.signature(TASKS[name]).parameters.values()
  known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
  if name == "basic":
    known += [
      field.name for field in dataclasses.fields(listops_trees.Settings)
    ]
  return list(dict.fromkeys(known))
