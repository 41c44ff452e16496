"""Writes ListOps as the files of the benchmark.

  python -m lra_tasks.listops_generator --output_dir DIR

draws expressions (see listops_trees.py) and writes basic_train.tsv,
basic_val.tsv and basic_test.tsv.
"""

import argparse
import dataclasses
import os
import pathlib
from collections.abc import Sequence

import numpy as np

from lra_tasks import listops, listops_trees


def text(tokens: np.ndarray) -> str:
  """An expression the way the benchmark's files write it.

  Arguments join their operator one at a time, each in its own parentheses:
  "( ( ( [MAX 2 ) 9 ) ] )" for [MAX 2 9 ].
  """
  pieces, unfinished = [], []
  for token in tokens.tolist():
    word = listops_trees.WORDS[token]
    if listops_trees.FIRST_OPERATOR <= token < listops_trees.CLOSE:
      unfinished.append(len(pieces))
      pieces.append(word)
      continue
    if token == listops_trees.CLOSE:
      start = unfinished.pop()
      pieces[start] = "( " + pieces[start]
      word += " )"
    if unfinished:
      pieces[unfinished[-1]] = "( " + pieces[unfinished[-1]]
      word += " )"
    pieces.append(word)
  return " ".join(pieces)


def write(
  directory: pathlib.Path, splits: dict[str, listops_trees.Expressions]
) -> None:
  """Writes the splits as the benchmark's files."""
  directory.mkdir(parents=True, exist_ok=True)
  for split, expressions in splits.items():
    path = directory / listops.FILES[split]
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w", newline="") as file:
      file.write(f"{listops.HEADER}\r\n")
      labels = expressions.labels
      for row, label in zip(expressions.rows(), labels, strict=True):
        file.write(f"{text(row)}\t{label}\r\n")
    os.replace(partial, path)


def main(arguments: Sequence[str] | None = None) -> None:
  """Runs the command line."""
  parser = argparse.ArgumentParser(
    prog="python -m lra_tasks.listops_generator",
    description=__doc__,
    epilog=listops_trees.Settings.__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument("--output_dir", type=pathlib.Path, required=True)
  for field in dataclasses.fields(listops_trees.Settings):
    parser.add_argument(
      f"--{field.name}",
      type=int,
      default=field.default,
      help=f"default: {field.default}",
    )
  options = vars(parser.parse_args(arguments))
  directory = options.pop("output_dir")
  try:
    write(directory, listops_trees.generate(listops_trees.Settings(**options)))
  except (ValueError, OSError) as error:
    parser.error(str(error))


if __name__ == "__main__":
  main()
