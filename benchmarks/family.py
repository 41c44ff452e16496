"""Races the delta-rule family: our memory, its forms, and another package.

  python -m benchmarks.family
  python -m benchmarks.family --rules=delta_rule,kda --shapes=1x4x2048x128
  python -m benchmarks.family --default_allocator
  python -m benchmarks.family --json=docs/results.json

For each shape (batch x heads x tokens x width), one race of all rules, forward
and gradient: `memory`, its two forms, and the chunked form of the package
jax-linear-attention (Python 3.12 or newer), if that is installed. All run once
per round, in turn. Ratios are of the fastest rounds; the last table compares
them with our goals.

Like `make bench`, it tells glibc to keep freed memory for reuse, which helps
most what needs most memory. With --default_allocator it does not.

The peer solves triangular systems by OpenBLAS, whose threads wait for each
other in a busy loop. Where other programs run, that can take a hundred times as
long as the work, even in the fastest round: set OPENBLAS_NUM_THREADS=1 there,
and compare with and without it elsewhere.
"""

import argparse
import importlib.metadata
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmarks import flags, goals, report, rules
from benchmarks.candidate import Result
from benchmarks.goals import Goal
from benchmarks.rules import PLAIN, RULES, SHAPES, Shape
from command_line import record, tables, tool
from nam_jax.training import host_memory

PEER = "jax-linear-attention"
ABSENT = f"{PEER} is not installed: it is left out"
THREADS = "OPENBLAS_NUM_THREADS"
TABLE = "family_speed"

# Goals: time of the peer / ours, at least; PLAIN has another at a width.
LEAST = {PLAIN: 3.0, "gated_delta_rule": 2.0, "kda": 3.0, "gdn2": 3.0}
WIDE, WIDE_LEAST = 128, 2.0
# At most.
MEMORY = 0.5  # temporary memory / the peer's
FORM = 1.1  # time / that of the better form
DECAY = {"gated_delta_rule": 1.3}  # time / that of PLAIN

COLUMNS = (
  "rule",
  "batch x heads x tokens x width",
  "peer, ms",
  "`memory`, ms",
  "peer / `memory`",
  "temporary memory / peer's",
  "`memory` / better form",
  "`memory` / without decay",
)


class Line(NamedTuple):
  """A rule and a shape, and four ratios; None where nothing was measured."""

  rule: str
  shape: Shape
  theirs: Result | None
  ours: Result
  time: float | None  # theirs / ours
  memory: float | None  # ours / theirs
  form: float | None  # ours / the better form's
  decay: float | None  # ours / without decay

  def cells(self) -> tuple[str, ...]:
    """In the order of COLUMNS: times as fastest (median), and ratios."""
    return (
      f"`{self.rule}`",
      " x ".join(f"{size:,}" for size in self.shape),
      _milliseconds(self.theirs),
      _milliseconds(self.ours),
      *("-" if ratio is None else f"{ratio:.2f}" for ratio in self[4:]),
    )


def _milliseconds(result: Result | None) -> str:
  if result is None or result.skipped:
    return "-"
  return f"{1e3 * result.seconds:.1f} ({1e3 * result.median_seconds:.1f})"


def compare(shape: Shape, raced: Mapping[str, list[Result]]) -> list[Line]:
  """The lines of a race: rule -> its results."""
  found = {name: {r.name: r for r in rs} for name, rs in raced.items()}
  plain = found.get(PLAIN, {}).get("memory")
  lines = []
  for rule, by_name in found.items():
    theirs, ours = by_name.get("peer"), by_name["memory"]
    forms = [by_name["memory_scan"], by_name["memory_chunked"]]
    better = min(forms, key=lambda r: r.seconds or float("inf"))
    ratios = (
      goals.ratio(theirs, ours, "seconds"),
      goals.ratio(ours, theirs, "temporary_mib"),
      goals.ratio(ours, better, "seconds"),
      None if rule == PLAIN else goals.ratio(ours, plain, "seconds"),
    )
    lines.append(Line(rule, shape, theirs, ours, *ratios))
  return lines


def judge(line: Line) -> Iterator[Goal]:
  """The goals of a line."""
  title = rules.title(line.rule, line.shape)
  is_wide = (line.rule, line.shape[3]) == (PLAIN, WIDE)
  least = WIDE_LEAST if is_wide else LEAST[line.rule]
  yield Goal(f"time of peer / memory, {title}", line.time, least)
  for what, value, most in (
    ("temporary memory of memory / peer", line.memory, MEMORY),
    ("time of memory / better form", line.form, FORM),
    ("time of memory / without decay", line.decay, DECAY.get(line.rule)),
  ):
    if most is not None:
      yield Goal(f"{what}, {title}", value, most, at_most=True)


def provenance(argv: Sequence[str], kept: bool) -> dict[str, str]:
  """How the numbers are made, as docs/results.json has it."""
  facts = report.machine()
  version = "" if rules.peer is None else importlib.metadata.version(PEER)
  threads = os.environ.get(THREADS)
  setting = [f"{THREADS}={threads}"] if threads else []
  return {
    "command": " ".join([*setting, "python -m benchmarks.family", *argv]),
    "seeds": "0",
    "machine": f"{facts['device']}, {facts['cores']} cores, float32, JAX"
    f" {facts['jax']}, {PEER} {version or 'absent'}, load average"
    f" {os.getloadavg()[0]:.1f} at the start",
    **record.when(),
    "differs": "Forward and backward pass: the fastest round, and the median"
    " in brackets; ratios are of the fastest. Freed memory is"
    f" {'kept for reuse' if kept else 'left to the default allocator'}."
    " Threads of OpenBLAS, which solves the peer's triangular systems:"
    f" {threads or 'as many as it chooses'}.",
  }


def shapes_of(text: str) -> tuple[Shape, ...]:
  """Parses "2x4x1024x64,1x4x2048x128"."""
  shapes = [
    tuple(map(flags.positive, part.split("x"))) for part in text.split(",")
  ]
  for shape in shapes:
    if len(shape) != len(SHAPES[0]):
      raise argparse.ArgumentTypeError(
        f"{rules.times(shape)!r} is not batch x heads x tokens x width"
      )
  return tuple(shapes)


def make_parser() -> argparse.ArgumentParser:
  """The options."""
  parser = tool.make_parser(__doc__, "python -m benchmarks.family")
  add = parser.add_argument
  add(
    "--rules",
    type=flags.names(tuple(RULES)),
    default=",".join(RULES),
    help="some of these",
  )
  shapes = ",".join(map(rules.times, SHAPES))
  add("--shapes", type=shapes_of, default=shapes, help="what to race")
  add("--rounds", type=flags.positive, default=10, help="of every race")
  add(
    "--default_allocator",
    action="store_true",
    help="leave freed memory to the C library",
  )
  add(
    "--json",
    type=record.table_file,
    help=f"file of tables to write {TABLE} to",
  )
  return parser


def main(argv: Sequence[str]) -> None:
  """Measures, prints and saves what argv asks for."""
  parser = make_parser()
  options = parser.parse_args(argv)
  if options.json and rules.peer is None:
    parser.error(f"--json needs {PEER}: install it (Python 3.12 or newer)")
  kept = not options.default_allocator
  if kept:
    host_memory.keep_freed_memory()
  made = provenance(argv, kept)
  print(*made.values(), sep="\n", flush=True)
  if rules.peer is None:
    print(ABSENT, flush=True)
  races, lines, start = [], [], time.monotonic()
  for shape in options.shapes:
    raced = rules.race(shape, options.rules, options.rounds)
    for results in raced.values():
      report.announce(results, time.monotonic() - start)
    races += raced.values()
    lines += compare(shape, raced)
  lines.sort(key=lambda line: options.rules.index(line.rule))
  cells = [COLUMNS, *(line.cells() for line in lines)]
  judged = [goal for line in lines for goal in judge(line)]
  print(
    report.as_text(races),
    tables.as_text(cells, markdown=False),
    report.goals_as_text(judged),
    sep="\n\n",
  )
  if options.json:
    rows = [dict(zip(COLUMNS, line.cells(), strict=True)) for line in lines]
    table = {"columns": COLUMNS, **made, "rows": rows}
    record.write_table(options.json, TABLE, table)
    print(f"\nwritten to {options.json}; `make pages` updates the pages")


if __name__ == "__main__":
  main(sys.argv[1:])
