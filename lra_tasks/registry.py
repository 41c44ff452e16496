"""All tasks by name."""

import dataclasses
import os
from collections.abc import Callable

from data_files import sources
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
  "listops": listops.make_task,
  "text": text.make_task,
  "retrieval": retrieval.make_task,
  "image": image.make_task,
  "pathfinder": pathfinder.make_task,
}


def make_task(
  name: str, data_dir: str | os.PathLike | None = None, **settings
) -> task.Task:
  """The task with this name.

  Args:
    name: one of TASKS.
    data_dir: the folder with its files; each task's module says which. None to
      look where TFDS keeps its data, or to generate ListOps.
    **settings: keyword arguments of the task's own make_task.
  """
  drawing = [field.name for field in dataclasses.fields(listops_trees.Settings)]
  more = drawing if name == "listops" else ()
  return sources.call("task", TASKS, name, data_dir, settings, more)
