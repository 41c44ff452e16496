"""Prints samples of a task: python -m algorithmic.show fib --digits 6.

A sample is a line of inputs and a line of targets: _ delimiter, M mask, E end,
. padding.
"""

import numpy as np

from algorithmic.tasks import registry
from command_line import tool


def _parser():
  summaries = (
    f"  {name:20}{task_class.__doc__.splitlines()[0]}"
    for name, task_class in registry.TASKS.items()
  )
  usage = "\n".join([__doc__, "Tasks:", *summaries])
  parser = tool.make_parser(usage, "python -m algorithmic.show")
  parser.add_argument("task", help="one of the tasks above")
  parser.add_argument(
    "--digits", type=int, default=6, help="digits per sample (default: 6)"
  )
  parser.add_argument(
    "--count", type=int, default=3, help="number of samples (default: 3)"
  )
  parser.add_argument(
    "--width", type=int, help="pad to this many tokens (default: as needed)"
  )
  parser.add_argument(
    "--seed", type=int, default=0, help="random seed (default: 0)"
  )
  return parser


def main(arguments: list[str] | None = None) -> None:
  """Prints what the arguments ask for; wrong ones end with one line."""
  parser = _parser()
  options = parser.parse_args(arguments)
  try:
    if options.count < 1:
      raise ValueError(f"count must be at least 1, got {options.count}")
    a_task = registry.make_task(options.task)
    rng = np.random.default_rng(options.seed)
    digits = np.full(options.count, options.digits)
    batch = a_task.sample(rng, digits, options.width)
  except ValueError as error:
    parser.error(str(error))
  samples = zip(batch.inputs, batch.targets, batch.loss_mask, strict=True)
  print("\n\n".join(a_task.show(*sample) for sample in samples))


if __name__ == "__main__":
  main()
