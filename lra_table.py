"""Trains every attention on small tasks of the Long Range Arena.

  python lra_table.py --data_dir=DIR
  python lra_table.py --show --markdown

A cell is the test accuracy after the last step, with the paper's Table 3 in
brackets: accuracy and training speed relative to softmax. With preset cpu all
attentions train for about the same time. Finished runs are skipped, stopped
ones continued. Other arguments go to train_lra.py.
"""

import sys

from lra_tasks import table

if __name__ == "__main__":
  sys.exit(table.main(sys.argv[1:], __doc__))
