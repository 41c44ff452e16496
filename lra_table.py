"""Trains every attention on every task of the Long Range Arena, small.

  python lra_table.py --data_dir=DIR
  python lra_table.py --show --markdown

A cell is the test accuracy after the last step, with the paper's Table 3 in
brackets: accuracy and training speed relative to softmax. With preset cpu all
attentions have about the same time. Finished runs are skipped, stopped ones
continued. Further arguments go to train_lra.py.
"""

import argparse
import itertools
import sys
from pathlib import Path

from command_line import tables
from lra_tasks import paper, table

SCRIPT = Path(__file__).resolve().with_name("train_lra.py")


def parse(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
  """The options, and the arguments that go on to the training."""
  parser = tables.make_parser(__doc__, "runs/lra", "cpu,lra,paper")
  add = parser.add_argument
  add("--data_dir", type=Path, help="folder of the data of all tasks")
  add("--tasks", type=tables.names, default=list(paper.TASKS))
  add("--attentions", type=tables.names, default=list(table.ATTENTIONS))
  add("--seed", type=int, default=0)
  return parser.parse_known_args(argv)


def main(argv: list[str]) -> int:
  """Runs what is missing and prints the table; the status is 1 on failure."""
  options, extra = parse(argv)
  runs = []
  for task, attention in itertools.product(options.tasks, options.attentions):
    more = list(extra)
    if options.data_dir and task != "listops":  # that one generates its own
      more.append(f"--data_dir={options.data_dir}")
    cell = table.Cell(task, attention, options.preset, options.seed)
    runs.append(cell.run(options.folder, more))
  todo = [] if options.show else runs
  went_well = tables.run_missing(SCRIPT, todo, options.jobs)
  rows = table.table(
    options.folder,
    options.tasks,
    options.attentions,
    options.preset,
    options.seed,
  )
  print(tables.as_text(rows, options.markdown))
  return int(not went_well)


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
