"""One trial: its random choices, what happened, and what went wrong.

lost        a run does not continue, or from an earlier step than it had saved
wrong       other numbers than without the disturbance, without a word about it
hung        nothing happens for longer than the limit
tracebacks  a crash, or an error that is not one line
"""

import random
import re
from pathlib import Path
from typing import NamedTuple

FAULTS = ("lost", "wrong", "hung", "tracebacks")

_CRASH = re.compile(
  r"^(Traceback \(most recent call last\)|Fatal Python error|\*\*\* |"
  r"F\d{4} |terminate called|Exception ignored|Segmentation fault).*$",
  re.MULTILINE,
)


class Verdict(NamedTuple):
  """How a trial ended."""

  name: str  # kind:seed, as for --only
  story: str
  faults: dict[str, str]  # fault -> why; empty if all is well

  @property
  def kind(self) -> str:
    """What was tried."""
    return self.name.partition(":")[0]

  def line(self) -> str:
    """One line for the terminal."""
    found = [f"{fault.upper()}: {why}" for fault, why in self.faults.items()]
    return f"{self.name}: {self.story}: {'; '.join(found) or 'ok'}"


class Case:
  """A trial that is under way."""

  def __init__(self, kind: str, seed: int, folder: Path, limit: float):
    """Starts a trial.

    Args:
      kind: what is tried.
      seed: decides every random choice.
      folder: a folder for this trial alone.
      limit: seconds after which something hangs.
    """
    self.name = f"{kind}:{seed}"
    self.rng = random.Random(self.name)
    self.folder, self.limit = folder, limit
    self._story: list[str] = []
    self._faults: dict[str, str] = {}

  def note(self, text: str) -> None:
    """Adds to the story what was done."""
    self._story.append(text)

  def blame(self, fault: str, why: str) -> None:
    """Counts a fault; of several of a kind, the first is told."""
    self._faults.setdefault(fault, why)

  def check_output(self, text: str) -> None:
    """A crash must not be in the output of a program."""
    if found := _CRASH.search(text):
      self.blame("tracebacks", found[0].strip()[:100])

  def verdict(self) -> Verdict:
    """How it ended."""
    return Verdict(self.name, ", ".join(self._story), dict(self._faults))
