"""The ratios we aim for; one run of the benchmark shows which are met."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.candidate import Result

GRADIENT = "forward+gradient"
NAM_FORMS = (
  ("bidirectional", "nam"),
  ("causal", "causal nam"),
  ("causal", "memory_scan"),
  ("causal", "memory_chunked"),
)
GROWTH = (4096, 8192)  # the lengths between which costs may double
MOST_GROWTH = 2.1

FORMS, TORCH = ("memory_scan", "memory_chunked"), "torch attention"
MEMORY = "memory"  # the faster of its two forms
PLAIN = "plain scan"
# (group, task, what is compared, with what, field, length -> at least).
RATIOS = (
  ("causal", GRADIENT, PLAIN, MEMORY, "seconds", {2048: 8, 8192: 12}),
  ("causal", GRADIENT, PLAIN, MEMORY, "temporary_mib", {8192: 20}),
  ("causal", GRADIENT, TORCH, MEMORY, "seconds", {1024: 1.5, 4096: 4}),
  (
    "bidirectional",
    GRADIENT,
    "softmax",
    "nam",
    "seconds",
    {2048: 40, 8192: 150},
  ),
)
# The same at every length.
EVERYWHERE = (
  ("causal", "forward", PLAIN, MEMORY, "seconds", 0.9),
  ("bidirectional", GRADIENT, "elu linear", "nam", "seconds", 1),
)
# (what is compared, with what, at least), forward and gradient.
MACHINES = (
  ("lsam, plain scan", "lsam", 2.5),
  ("nam_tm, plain scan", "nam_tm", 3.5),
  ("dnc, plain scan", "dnc", 2.0),
  ("lstm, plain scan", "lstm", 1.0),
  ("nam_tm, torch loop", "nam_tm", 20.0),
)
LRA_TOKENS = 1024
# (what is compared, with what, at least), a training step.
LRA = (
  ("softmax", "nam", 10.0),
  ("linear", "nam", 1.0),
  ("softmax", "nam_decay", 5.0),
  ("softmax", "nam_full", 3.0),
)
EPISODES = 100.0  # as many in the time that a loop takes for one


class Goal(NamedTuple):
  """A ratio we aim for and the one measured, None if none was."""

  name: str
  value: float | None
  goal: float
  at_most: bool = False

  @property
  def met(self) -> bool | None:
    """Whether the goal is met; None if nothing was measured."""
    if self.value is None:
      return None
    return self.value <= self.goal if self.at_most else self.value >= self.goal

  def cells(self) -> list[str]:
    """Name, value, goal and verdict, for a table."""
    verdict = {True: "met", False: "missed", None: "not measured"}[self.met]
    value = "" if self.value is None else f"{self.value:.2f}"
    aim = f"{'at most' if self.at_most else 'at least'} {self.goal:g}"
    return [self.name, value, aim, verdict]


def judge(results: Sequence[Result], sizes: Iterable[int]) -> list[Goal]:
  """All goals; those for every length are for the sizes given."""
  found = {(r.group, r.task, r.name, r.size): r for r in results}
  for r in sorted(results, key=lambda r: -(r.seconds or math.inf)):
    if r.name in FORMS:
      found[r.group, r.task, MEMORY, r.size] = r
  return [
    *_forms(found, sizes),
    *_growth(found),
    *_machines(results),
    *_steps(results),
  ]


def _forms(found, sizes) -> Iterator[Goal]:
  every = [
    (*compared, dict.fromkeys(sizes, goal)) for *compared, goal in EVERYWHERE
  ]
  for group, task, slow, fast, field, least in (*RATIOS, *every):
    what = "time" if field == "seconds" else "temporary memory"
    for size, goal in least.items():
      pair = (found.get((group, task, name, size)) for name in (slow, fast))
      title = f"{what} of {slow} / {fast}, {task}, S={size}"
      yield Goal(title, ratio(*pair, field), goal)


def _growth(found) -> Iterator[Goal]:
  short, long = GROWTH
  for group, name in NAM_FORMS:
    for task in ("forward", GRADIENT):
      for field, what in (
        ("flops", "FLOPs"),
        ("temporary_mib", "temporary memory"),
      ):
        value = ratio(
          found.get((group, task, name, long)),
          found.get((group, task, name, short)),
          field,
        )
        title = f"{what} of {name}, {task}, S={long} / S={short}"
        yield Goal(title, value, MOST_GROWTH, at_most=True)


def _machines(results) -> Iterator[Goal]:
  by_name = {r.name: r for r in results if r.group == "machines"}
  for slow, fast, goal in MACHINES:
    value = ratio(by_name.get(slow), by_name.get(fast), "seconds")
    yield Goal(f"time of {slow} / {fast}, {GRADIENT}", value, goal)


def _steps(results) -> Iterator[Goal]:
  steps = {
    r.name: r for r in results if (r.group, r.size) == ("lra", LRA_TOKENS)
  }
  for slow, fast, goal in LRA:
    value = ratio(steps.get(slow), steps.get(fast), "seconds")
    yield Goal(f"time of {slow} / {fast}, a training step", value, goal)
  shots = [r for r in results if r.group == "fewshot"]
  value = None
  if shots:
    one, many = shots
    value = many.size * ratio(one, many, "seconds")
  yield Goal("few-shot episodes in the time of one by a loop", value, EPISODES)


def ratio(
  top: Result | None, bottom: Result | None, field: str
) -> float | None:
  """The first field over the second; None if one was not measured."""
  if top is None or bottom is None:
    return None
  a, b = getattr(top, field), getattr(bottom, field)
  return a / b if a is not None and b else None
