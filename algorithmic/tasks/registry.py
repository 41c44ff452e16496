"""All tasks by name."""

import dataclasses
import difflib

from algorithmic.tasks import (
  binary_addition,
  bucket_sort,
  copy,
  cycle_navigation,
  dyck,
  even_pairs,
  fib,
  modular_arithmetic,
  odds_first,
  palin,
  parity,
  progression,
  reduce,
  repeat_copy,
  reverse_string,
  stack_manipulation,
  task,
)

TASKS: dict[str, type[task.Task]] = {
  task_class.name: task_class
  for task_class in (
    fib.Fib,
    palin.Palin,
    reduce.Reduce,
    copy.Copy,
    repeat_copy.RepeatCopy,
    progression.Progression,
    dyck.Dyck,
    parity.Parity,
    even_pairs.EvenPairs,
    modular_arithmetic.ModularArithmetic,
    cycle_navigation.CycleNavigation,
    reverse_string.ReverseString,
    stack_manipulation.StackManipulation,
    bucket_sort.BucketSort,
    odds_first.OddsFirst,
    binary_addition.BinaryAddition,
  )
}


def make_task(name: str, **fields) -> task.Task:
  """The task of this name, with these dataclass fields."""
  _check("task", name, list(TASKS))
  known = [field.name for field in dataclasses.fields(TASKS[name])]
  for field in fields:
    _check(f"field of task {name!r}", field, known)
  return TASKS[name](**fields)


def _check(what: str, name: str, known: list[str]) -> None:
  """Raises a one-line error with the nearest known name, and all of them."""
  if name in known:
    return
  nearest = difflib.get_close_matches(name, known, n=1)
  hint = f"; did you mean {nearest[0]!r}?" if nearest else ";"
  raise ValueError(
    f"unknown {what} {name!r}{hint} known: {', '.join(known) or 'none'}"
  )
