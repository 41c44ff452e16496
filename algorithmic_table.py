"""Runs tasks x models x seeds and prints the results next to the paper's.

  python algorithmic_table.py --folder=runs/table --seeds=0,1,2
  python algorithmic_table.py --folder=runs/table --show

A cell is the sequence accuracy on ID/OD-easy/OD-hard, the mean of all finished
seeds, with the paper's numbers in brackets. Finished runs are skipped, stopped
ones continued. Other arguments go to train_algorithmic.py.
"""

import sys

from algorithmic import table

if __name__ == "__main__":
  sys.exit(table.main(sys.argv[1:], __doc__))
