"""Runs tasks x models x seeds and prints the results next to the paper's.

  python algorithmic_table.py --folder=runs/table --seeds=0,1,2
  python algorithmic_table.py --folder=runs/table --show

A cell is the sequence accuracy on ID/OD-easy/OD-hard, the mean of all finished
seeds, with the paper's numbers in brackets. Finished runs are skipped, stopped
ones continued. Further arguments go to train_algorithmic.py.
"""

import argparse
import itertools
import subprocess
import sys
from concurrent import futures
from pathlib import Path

from experiments import algorithmic_table

HERE = Path(__file__).resolve().parent


def run_one(folder: Path, run: algorithmic_table.Run, extra: list[str]) -> int:
  """Trains in a process of its own; returns its exit status."""
  workdir = run.workdir(folder)
  if (workdir / "results.json").exists():
    return 0
  configs = HERE / "configs" / "algorithmic"
  config = f"{configs / run.task}.py:{run.model},{run.preset}"
  if not (configs / f"{run.task}.py").exists():
    config = f"{configs}/task.py:{run.task},{run.model},{run.preset}"
  command = [sys.executable, HERE / "train_algorithmic.py"]
  command += [f"--config={config}", f"--config.seed={run.seed}"]
  command += [f"--workdir={workdir}", *extra]
  folder.mkdir(parents=True, exist_ok=True)
  log = workdir.with_name(workdir.name + ".log")
  print(f"{workdir.name} starts, see {log}", flush=True)
  with log.open("a") as file:
    status = subprocess.run(command, stdout=file, stderr=file).returncode
  print(f"{workdir.name} ends with status {status}", flush=True)
  return status


def parse(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
  """The options, and the arguments that go on to the training."""
  parser = argparse.ArgumentParser(
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  add, names = parser.add_argument, lambda text: text.split(",")
  add("--folder", type=Path, default=Path("runs/table"), help="of all runs")
  add("--tasks", type=names, default=list(algorithmic_table.PAPER_TASKS))
  add("--models", type=names, default=list(algorithmic_table.PAPER))
  add("--seeds", type=lambda text: [int(s) for s in names(text)], default=[0])
  add("--preset", default="cpu", help="cpu or paper")
  add("--jobs", type=int, default=1, help="runs at the same time")
  add("--show", action="store_true", help="run nothing, print the table")
  add("--markdown", action="store_true", help="print a Markdown table")
  return parser.parse_known_args(argv)


def main(argv: list[str]) -> int:
  """Runs what is missing and prints the table; the status is 1 on failure."""
  options, extra = parse(argv)
  cells = itertools.product(options.seeds, options.tasks, options.models)
  runs = [
    algorithmic_table.Run(task, model, options.preset, seed)
    for seed, task, model in cells
  ]
  with futures.ThreadPoolExecutor(options.jobs) as pool:
    todo = [] if options.show else runs
    failed = sum(pool.map(lambda r: run_one(options.folder, r, extra), todo))
  rows = algorithmic_table.table(
    options.folder, options.tasks, options.models, options.preset, options.seeds
  )
  print(algorithmic_table.as_text(rows, options.markdown))
  return int(failed != 0)


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
