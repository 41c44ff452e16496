"""A run gets a signal at a random moment, then the same command again."""

import re
import signal
import time

from chaos import lab as lab_lib
from chaos import processes
from chaos.case import Case
from chaos.lab import Lab

# Each signal as often as it is listed; some come twice.
SIGNALS = (
  *((signal.SIGKILL,),) * 3,
  *((signal.SIGTERM,),) * 2,
  *((signal.SIGINT,),) * 2,
  (signal.SIGTERM,) * 2,
  (signal.SIGINT,) * 2,
)


def trial(case: Case, lab: Lab) -> None:
  """Kills a run, continues it, and compares it with an undisturbed one."""
  workdir = case.folder / "run"
  toy = processes.Toy(workdir, case.folder / "killed.log")
  sent = await_moment(case, lab, toy, lab_lib.STARTED)
  signals = case.rng.choice(SIGNALS)
  case.note(" and ".join(s.name for s in signals))
  in_time = is_early(toy.output())
  for number in signals:
    toy.send(number)
    time.sleep(case.rng.uniform(0, 0.3))
  status = toy.end(case, statuses(signals[0]))
  if in_time and status == 0:
    case.blame("wrong", f"{signals[0].name} had no effect")
  case.note(f"{time.monotonic() - sent:.1f} s later it had ended")
  saved = lab_lib.saved_step(workdir)
  _check_promise(case, toy.output(), saved)
  case.note(f"saved step {saved}")
  lab_lib.continue_and_compare(case, workdir, lab.folder / "whole", saved)


def await_moment(case: Case, lab: Lab, toy: processes.Toy, first: str) -> float:
  """Waits for a moment after the first line, and often in the loop."""
  if case.rng.random() < 0.3:
    text, longest, where = first, lab.times.start, "the first line"
  else:
    text, longest, where = lab_lib.STEP, lab.times.loop, "the first step"
  delay = case.rng.uniform(0, longest)
  case.note(f"{delay:.2f} s after {where}")
  toy.await_text(text, case.limit)
  time.sleep(delay)
  return time.monotonic()


def is_early(output: str) -> bool:
  """Whether a run that has printed this has half of its steps to go."""
  steps = re.findall(r"^step (\d+)/(\d+)", output, re.MULTILINE)
  return not steps or 2 * int(steps[-1][0]) <= int(steps[-1][1])


def statuses(number: signal.Signals) -> list[int]:
  """How a process may end after a signal: also before it arrived."""
  if number is signal.SIGINT:
    return [0, 128 + number]
  return [0, 128 + number, -number]


def _check_promise(case, output, saved):
  """What a stopped run says that it has saved must be there."""
  _, found, rest = output.partition("\nstopped by ")
  if found:
    step = int(rest.partition(" after step ")[2].partition(",")[0])
    if step != saved:
      case.blame("lost", f"step {step} is said to be saved, found {saved}")
