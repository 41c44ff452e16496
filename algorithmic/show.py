"""Prints samples of a task: python -m algorithmic.show fib --digits 6.

A sample is a line of inputs and a line of targets: _ delimiter, M mask, E end,
. padding.
"""

import numpy as np

from algorithmic.tasks import registry
from command_line import tool


def main(arguments: list[str] | None = None) -> None:
  """Runs the command line."""
  width = max(map(len, registry.TASKS)) + 2
  summaries = (
    f"  {name:{width}}{task_class.__doc__.splitlines()[0]}"
    for name, task_class in registry.TASKS.items()
  )
  parser = tool.make_parser(
    __doc__,
    "python -m algorithmic.show",
    "tasks:\n" + "\n".join(summaries),
  )
  add = parser.add_argument
  add("task", help="one of the tasks below")
  add("--digits", type=int, default=6, help="digits per sample")
  add("--count", type=int, default=3, help="number of samples")
  add("--width", type=int, help="pad to this many tokens (default: as needed)")
  add("--seed", type=int, default=0, help="random seed")
  tool.run(parser, _show, arguments)


def _show(options) -> None:
  if options.count < 1:
    raise ValueError(f"count must be at least 1, got {options.count}")
  a_task = registry.make_task(options.task)
  rng = np.random.default_rng(options.seed)
  digits = np.full(options.count, options.digits)
  batch = a_task.sample(rng, digits, options.width)
  samples = zip(batch.inputs, batch.targets, batch.loss_mask, strict=True)
  print("\n\n".join(a_task.show(*sample) for sample in samples))


if __name__ == "__main__":
  main()
