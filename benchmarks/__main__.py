"""Times what the library computes, side by side, and prints ratios.

  make bench
  python -m benchmarks --groups=causal,machines --sizes=1024,4096
  python -m benchmarks --quick

Every candidate of a race runs once a round, in turn, and its fastest round
counts. Candidates of PyTorch take part where it is installed. The last table
says which of the library's promises hold. Leaves results.json and, for
sequences, cost_by_length.png in the folder.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import (
  bars,
  candidate,
  machines,
  peers,
  plot,
  report,
  sequence,
  steps,
)
from nam_jax.models import lra
from nam_jax.training import host_memory

GROUPS = {
  "bidirectional": sequence.bidirectional,
  "causal": sequence.causal,
  "machines": machines.machines,
  "lra": steps.lra,
  "fewshot": steps.fewshot,
  "streaming": steps.streaming,
}


def positive(text: str) -> int:
  """A whole number from 1."""
  if not text.isdecimal() or int(text) < 1:
    raise argparse.ArgumentTypeError(f"{text!r} is no positive whole number")
  return int(text)


def lengths(text: str) -> tuple[int, ...]:
  """The numbers of "256,512", in ascending order."""
  return tuple(sorted({positive(part) for part in text.split(",")}))


def names(known: Sequence[str]):
  """What reads "a,b", each of them known."""

  def parse(text: str) -> tuple[str, ...]:
    for name in text.split(","):
      if name not in known:
        raise argparse.ArgumentTypeError(
          f"unknown {name!r}; choose from {', '.join(known)}"
        )
    return tuple(text.split(","))

  return parse


class _Parser(argparse.ArgumentParser):
  """Complains in one line."""

  def error(self, message):
    self.exit(2, f"benchmarks: {message}\n")


def make_parser() -> argparse.ArgumentParser:
  """The options."""
  default = candidate.Settings()
  parser = _Parser(
    prog="python -m benchmarks",
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  add = parser.add_argument
  add(
    "--groups",
    type=names(GROUPS),
    default=tuple(GROUPS),
    help=f"some of {', '.join(GROUPS)} (default: all)",
  )
  add(
    "--sizes",
    type=lengths,
    help=f"tokens of a sequence (default: {_joined(default.sizes)})",
  )
  add(
    "--rounds",
    type=positive,
    help=f"of a race, as time allows (default: {default.rounds})",
  )
  add(
    "--limit",
    type=float,
    help="seconds of a run; what would take longer is skipped (default:"
    f" {default.limit:g})",
  )
  add(
    "--attentions",
    type=names(lra.KINDS),
    help=f"of the group lra (default: {_joined(default.attentions)})",
  )
  add(
    "--out",
    type=Path,
    default=Path("runs/bench"),
    help="folder of the results (default: %(default)s)",
  )
  add("--quick", action="store_true", help="tiny sizes: does it run at all?")
  return parser


def _joined(values) -> str:
  return ",".join(map(str, values))


def main(argv: Sequence[str]) -> None:
  """Measures, prints and writes what argv asks for."""
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
      _announce(results, time.monotonic() - start)
  results = [r for race in races for r in race]
  judged = bars.judge(results, settings.sizes)
  print(report.as_text(races), report.bars_as_text(judged), sep="\n\n")
  options.out.mkdir(parents=True, exist_ok=True)
  file = options.out / "results.json"
  text = json.dumps(report.as_json(settings, races, judged), indent=2)
  file.write_text(text + "\n")
  figure = plot.cost_by_length(results, settings.heads)
  if figure is not None:
    figure.savefig(options.out / "cost_by_length.png", dpi=120)
  print(f"\nwritten to {options.out}")


def _announce(results, passed):
  """Says on stderr what has been measured after how many seconds."""
  first, raced = results[0], ", ".join(r.name for r in results)
  print(
    f"{passed:4.0f} s: {first.group}, {first.task}, {first.size}: {raced}",
    file=sys.stderr,
    flush=True,
  )


if __name__ == "__main__":
  main(sys.argv[1:])
