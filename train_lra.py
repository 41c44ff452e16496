"""Trains a classifier on a task of the Long Range Arena and tests it.

  python train_lra.py --config=configs/lra/listops.py:nam
  python train_lra.py --config=configs/lra/text.py:nam,paper --data_dir=DIR
  python train_lra.py --config=CHECKOUT/lra_benchmarks/image/configs/cifar10/\\
transformer_base.py --data_dir=DIR --attention=nam

The config is one of ours, "file:attention,preset" with preset cpu (small, the
default), lra (the benchmark's sizes) or paper, or one of the benchmark's own
files, unchanged. The same command continues a stopped run. The run's folder
gets results.json, metrics.jsonl, summary/ and checkpoints.
"""

from command_line import interrupt

if __name__ == "__main__":
  interrupt.install()  # before the imports, which take seconds
  from command_line import script
  from lra_tasks import run

  script.run(run.main, __doc__)
