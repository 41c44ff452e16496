"""One of two processes of a run is stopped or killed."""

import signal

from chaos import kills
from chaos import lab as lab_lib
from chaos.case import Case
from chaos.lab import Lab

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
HIT = ([0], [1], [0, 1])  # processes


def trial(case: Case, lab: Lab) -> None:
  """Both must end, and both continue when they are started again."""
  workdir = case.folder / "run"
  toys = lab_lib.start_two(workdir, case.folder)
  number = case.rng.choice(SIGNALS)
  hit = case.rng.choice(HIT)
  case.note(f"{number.name} to {' and '.join(map(str, hit))}")
  # Before they are connected, one waits for the other, who may yet come.
  for toy in toys:
    toy.await_text(lab_lib.CONNECTED, case.limit)
  kills.await_moment(case, lab, toys[0], lab_lib.CONNECTED)
  in_time = kills.is_early(toys[0].output())
  for i in hit:
    toys[i].send(number)
  # A process that was not hit may only see that the other is gone.
  ended = [toy.end(case, [*kills.statuses(number), 1]) for toy in toys]
  case.note(f"statuses {ended}")
  if in_time and 0 in ended:
    case.blame("wrong", f"{number.name} had no effect")
  saved = lab_lib.saved_step(workdir)
  case.note(f"saved step {saved}")
  again = case.folder / "again"
  toys = lab_lib.start_two(workdir, again)
  if [toy.end(case, [0]) for toy in toys] == [0, 0]:
    lab_lib.check_start(case, toys[0].output(), saved)
    lab_lib.compare(case, workdir, lab.folder / "two")
