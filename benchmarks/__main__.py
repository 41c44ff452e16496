"""Times what the library computes, side by side, and prints ratios.

  make bench
  make bench ARGS=--check
  python -m benchmarks --groups=causal,machines --sizes=1024,4096
  python -m benchmarks --groups=lra --lra=listops:2000,text:4000
  python -m benchmarks --quick

Every candidate in a race runs once per round, in turn, and its fastest round
counts, so a busy machine slows all of them equally. PyTorch takes part if it is
installed. The last table compares the ratios with our goals; with --check the
exit status is 1 if one is missed. Writes results.json and, for sequences,
cost_by_length.png.

`python -m benchmarks.family` races the memory with decay and gates per channel
against another package, and `python -m benchmarks.step_memory` shows how much
memory a training step needs; see their --help.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
  candidate,
  flags,
  goals,
  lra_step,
  machines,
  peers,
  plot,
  report,
  sequence,
  steps,
)
from command_line import tool
from nam_jax.models import attentions
from nam_jax.training import host_memory

GROUPS = {
  "bidirectional": sequence.bidirectional,
  "causal": sequence.causal,
  "machines": machines.machines,
  "lra": steps.lra,
  "fewshot": steps.fewshot,
  "streaming": steps.streaming,
}


def inputs(text: str) -> tuple[tuple[str, int], ...]:
  """Parses "listops:2000,text:4000"."""
  pairs = [part.partition(":") for part in text.split(",")]
  known, number = flags.names(lra_step.SIZES), flags.positive
  return tuple((*known(name), number(length)) for name, _, length in pairs)


def make_parser() -> argparse.ArgumentParser:
  """The options."""
  default = candidate.Settings()
  parser = tool.make_parser(__doc__, "python -m benchmarks")
  add = parser.add_argument
  add(
    "--groups",
    type=flags.names(GROUPS),
    default=tuple(GROUPS),
    help=f"some of {', '.join(GROUPS)} (default: all)",
  )
  add(
    "--sizes",
    type=flags.lengths,
    help=f"lengths of sequences (default: {_joined(default.sizes)})",
  )
  add(
    "--rounds",
    type=flags.positive,
    help=f"rounds of a race, as time allows (default: {default.rounds})",
  )
  add(
    "--limit",
    type=float,
    help="skip what would take more seconds per run (default:"
    f" {default.limit:g})",
  )
  add(
    "--lra",
    type=inputs,
    help="config:length pairs of the group lra (default: "
    + _joined(f"{file}:{length}" for file, length in default.lra)
    + ")",
  )
  add(
    "--attentions",
    type=flags.names(attentions.KINDS),
    help=f"of the group lra (default: {_joined(default.attentions)})",
  )
  add(
    "--out",
    type=Path,
    default=Path("runs/bench"),
    help="folder for the results (default: %(default)s)",
  )
  add("--quick", action="store_true", help="tiny sizes: does it run at all?")
  add("--check", action="store_true", help="exit with 1 if a goal is missed")
  return parser


def _joined(values) -> str:
  return ",".join(map(str, values))


def main(argv: Sequence[str]) -> int:
  """Measures, prints and writes what argv asks for; returns the status."""
  options = make_parser().parse_args(argv)
  settings = candidate.QUICK if options.quick else candidate.Settings()
  given = {
    name: getattr(options, name)
    for name in settings._fields
    if getattr(options, name, None) is not None
  }
  settings = settings._replace(**given)
  host_memory.keep_freed_memory()
  if peers.torch is None:
    print(peers.ABSENT, flush=True)
  races, start = [], time.monotonic()
  for name in options.groups:
    for results in GROUPS[name](settings):
      races.append(results)
      report.announce(results, time.monotonic() - start)
  results = [r for race in races for r in race]
  judged = goals.judge(results, settings.sizes)
  print(report.as_text(races), report.goals_as_text(judged), sep="\n\n")
  options.out.mkdir(parents=True, exist_ok=True)
  file = options.out / "results.json"
  text = json.dumps(report.as_json(settings, races, judged), indent=2)
  file.write_text(text + "\n")
  figure = plot.cost_by_length(results, settings.heads)
  if figure is not None:
    figure.savefig(options.out / "cost_by_length.png", dpi=120)
  print(f"\nwritten to {options.out}")
  missed = any(goal.met is False for goal in judged)
  return int(options.check and missed)


if __name__ == "__main__":
  sys.exit(main(sys.argv[1:]))
