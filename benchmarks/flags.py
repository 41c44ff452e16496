"""How the options of the benchmarks are read."""

import argparse
from collections.abc import Sequence


def positive(text: str) -> int:
  """Parses a positive integer."""
  if not text.isdecimal() or int(text) < 1:
    raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
  return int(text)


def lengths(text: str) -> tuple[int, ...]:
  """Parses "256,512" into numbers in ascending order."""
  return tuple(sorted({positive(part) for part in text.split(",")}))


def names(known: Sequence[str]):
  """Parses "a,b", where each name is known."""

  def parse(text: str) -> tuple[str, ...]:
    for name in text.split(","):
      if name not in known:
        raise argparse.ArgumentTypeError(
          f"unknown {name!r}; choose from {', '.join(known)}"
        )
    return tuple(text.split(","))

  return parse
