"""Trains a model on an algorithmic task and tests it on longer inputs.

  python train_algorithmic.py
  python train_algorithmic.py --config=configs/algorithmic/fib.py:lsam
  python train_algorithmic.py --config=configs/algorithmic/palin.py:dnc,paper
  python train_algorithmic.py --config=configs/algorithmic/task.py:dyck,ut \\
    --config.learning_rate=1e-3 --workdir=runs/dyck

The same command continues a stopped run. The run's folder gets results.json,
pictures, metrics.jsonl and checkpoints.
"""

from command_line import interrupt

if __name__ == "__main__":
  interrupt.install()  # before the imports, which take seconds
  from algorithmic import run
  from command_line import script

  script.run(run.main, __doc__)
