"""All tasks by name."""

import dataclasses

from algorithmic.tasks import (
  expressions,
  groups,
  numbers,
  recall,
  reduce,
  repeat_copy,
  stacks,
  strings,
  task,
)
from nam_jax import spelling

TASKS: dict[str, type[task.Task]] = {
  task_class.name: task_class
  for task_class in (
    numbers.Fib,
    strings.Palin,
    reduce.Reduce,
    strings.Copy,
    repeat_copy.RepeatCopy,
    numbers.Progression,
    stacks.Dyck,
    strings.Parity,
    strings.EvenPairs,
    strings.ModularArithmetic,
    expressions.BracketArithmetic,
    expressions.SolveEquation,
    strings.CycleNavigation,
    strings.ReverseString,
    stacks.StackManipulation,
    strings.BucketSort,
    strings.OddsFirst,
    strings.DuplicateString,
    strings.MissingDuplicate,
    numbers.BinaryAddition,
    numbers.BinaryMultiplication,
    numbers.SquareRoot,
    groups.GroupWord,
    recall.Recall,
  )
}


def make_task(name: str, **fields) -> task.Task:
  """The task with this name and these dataclass fields."""
  if name not in TASKS:
    raise ValueError(spelling.unknown("task", name, TASKS))
  known = [field.name for field in dataclasses.fields(TASKS[name])]
  for field in fields:
    if field not in known:
      kind = f"field of task {name!r}"
      raise ValueError(spelling.unknown(kind, field, known))
  return TASKS[name](**fields)
