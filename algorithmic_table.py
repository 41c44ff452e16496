"""Runs tasks x models x seeds and prints the results next to published ones.

  python algorithmic_table.py --seeds=0,1,2
  python algorithmic_table.py --preset=converged --jobs=2
  python algorithmic_table.py --suite=chomsky --seeds=0,1,2 --jobs=2
  python algorithmic_table.py --suite=state_tracking --show --markdown
  python algorithmic_table.py --suite=recall --picture=runs/recall.png

The suite `paper` is Table 1: a cell is the sequence accuracy on ID/OD-easy/
OD-hard, the mean of all finished seeds, with the paper's numbers in brackets.
Other suites have other tasks, lengths and models; the last lines have what
others published. Preset `converged` trains until the accuracy on ID no longer
rises. Finished runs are skipped, stopped ones continued. Other arguments go to
train_algorithmic.py; use another --folder for other settings.
"""

import sys

from algorithmic import table

if __name__ == "__main__":
  sys.exit(table.main(sys.argv[1:], __doc__))
