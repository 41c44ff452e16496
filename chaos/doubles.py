"""Two runs are started in one folder."""

import time

from chaos import lab as lab_lib
from chaos import processes
from chaos.case import Case
from chaos.lab import Lab


def trial(case: Case, lab: Lab) -> None:
  """One run must end as if it were alone; the other is told of it."""
  workdir = case.folder / "run"
  delay = case.rng.choice((0, case.rng.uniform(0, lab.times.start)))
  case.note(f"the second {delay:.2f} s after the first")
  toys = []
  for i in range(2):
    toys.append(processes.Toy(workdir, case.folder / f"run{i}.log"))
    time.sleep(delay * (1 - i))
  ended = [toy.end(case, [0, 2]) for toy in toys]
  refused = [t for t, status in zip(toys, ended, strict=True) if status == 2]
  case.note(f"{len(refused)} refused")
  for toy in refused:
    if "is in use by process" not in toy.output():
      case.blame("wrong", "refused for another reason")
  if 0 in ended:
    lab_lib.compare(case, workdir, lab.folder / "whole")
  else:
    case.blame("lost", "neither has finished")
