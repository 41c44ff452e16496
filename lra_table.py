"""Trains every attention on the tasks of the Long Range Arena.

  python lra_table.py --minutes=20 --jobs=2 --data_dir=DIR
  python lra_table.py --minutes=20 --best_seeds=1,2 --data_dir=DIR
  python lra_table.py --minutes=20 --show --markdown --pictures=runs/lra

Each task has a table: the test accuracy of the state that is best in
validation, and of the last one; then the paper's Table 3, accuracy and training
speed relative to softmax. Several seeds are averaged, with their standard
deviation.

All runs get the same effort: --steps updates or --minutes of updates and
evaluations, to which compilation is added. For --minutes, the pace of each
attention is measured first, and the number of updates set accordingly; the
warm-up keeps its share of the preset's run. Otherwise the preset decides.
Finished runs are skipped, stopped ones continued. Other arguments go to
train_lra.py; use another --folder for other settings.
"""

import sys

from lra_tasks import table

if __name__ == "__main__":
  sys.exit(table.main(sys.argv[1:], __doc__))
