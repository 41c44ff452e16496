"""All tasks by name."""

import dataclasses

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
from nam_jax import spelling

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
  if name not in TASKS:
    raise ValueError(spelling.unknown("task", name, TASKS))
  known = [field.name for field in dataclasses.fields(TASKS[name])]
  for field in fields:
    if field not in known:
      kind = f"field of task {name!r}"
      raise ValueError(spelling.unknown(kind, field, known))
  return TASKS[name](**fields)
