"""Runs tasks x models x seeds and prints the results next to the paper's.

  python algorithmic_table.py --folder=runs/table --seeds=0,1,2
  python algorithmic_table.py --folder=runs/table --show

A cell is the sequence accuracy on ID/OD-easy/OD-hard, the mean of all finished
seeds, with the paper's numbers in brackets. Finished runs are skipped, stopped
ones continued. Further arguments go to train_algorithmic.py.
"""

import argparse
import itertools
import sys
from pathlib import Path

from algorithmic import paper, table
from command_line import tables

SCRIPT = Path(__file__).resolve().with_name("train_algorithmic.py")


def parse(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
  """The options, and the arguments that go on to the training."""
  parser = tables.make_parser(__doc__, "runs/table", "cpu,paper")
  add, names = parser.add_argument, tables.names
  add("--tasks", type=names, default=list(paper.TASKS))
  add("--models", type=names, default=list(paper.ACCURACY))
  add("--seeds", type=lambda text: [int(s) for s in names(text)], default=[0])
  return parser.parse_known_args(argv)


def main(argv: list[str]) -> int:
  """Runs what is missing and prints the table; the status is 1 on failure."""
  options, extra = parse(argv)
  cells = itertools.product(options.seeds, options.tasks, options.models)
  runs = [
    table.Cell(task, model, options.preset, seed).run(options.folder, extra)
    for seed, task, model in cells
  ]
  todo = [] if options.show else runs
  went_well = tables.run_missing(SCRIPT, todo, options.jobs)
  rows = table.table(
    options.folder, options.tasks, options.models, options.preset, options.seeds
  )
  print(tables.as_text(rows, options.markdown))
  return int(not went_well)


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
