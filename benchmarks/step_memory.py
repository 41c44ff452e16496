"""Memory of a training step of the Long Range Arena, batch and all.

  python -m benchmarks.step_memory
  python -m benchmarks.step_memory --lra=text:4000 --attentions=softmax,nam

Compiles the step of each config's preset "lra" and runs nothing, so it needs
neither that memory nor data. Prints GiB for each attention.
"""

import sys
from collections.abc import Sequence

import jax

from benchmarks import __main__ as command
from benchmarks import flags, lra_step
from command_line import tables, tool
from nam_jax.models import attentions

INPUTS = (
  ("listops", 2000),
  ("text", 1000),
  ("text", 4000),
  ("retrieval", 4000),
  ("image", 1024),
  ("pathfinder", 1024),
)
ATTENTIONS = (
  "softmax",
  "linear",
  "nam",
  "nam_erase",
  "nam_decay",
  "nam_full",
  "lru",
)


def main(argv: Sequence[str]) -> None:
  """Prints the table that argv asks for."""
  parser = tool.make_parser(__doc__, "python -m benchmarks.step_memory")
  parser.add_argument(
    "--lra",
    type=command.inputs,
    default=INPUTS,
    help="config:length pairs (default: all tasks)",
  )
  parser.add_argument(
    "--attentions",
    type=flags.names(attentions.KINDS),
    default=ATTENTIONS,
    help=f"(default: {','.join(ATTENTIONS)})",
  )
  options = parser.parse_args(argv)
  rows = [("task, tokens", *options.attentions)]
  for file, length in options.lra:
    cells = [_gib(file, length, name) for name in options.attentions]
    rows.append((f"{file}, {length:,}", *cells))
    print(*rows[-1], sep=", ", file=sys.stderr, flush=True)
  print(tables.as_text(rows, markdown=False))


def _gib(file, length, attention):
  needed = lra_step.bytes_needed(file, length, attention)
  jax.clear_caches()
  return "unknown" if needed is None else f"{needed / 2**30:.1f}"


if __name__ == "__main__":
  main(sys.argv[1:])
