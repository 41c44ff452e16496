"""Writes ListOps in the benchmark's file format.

  python -m lra_tasks.listops_generator --output_dir DIR

draws expressions (see listops_trees.py) and writes basic_train.tsv,
basic_val.tsv and basic_test.tsv.
"""

import dataclasses
import pathlib
from collections.abc import Sequence

import numpy as np

from command_line import tool
from lra_tasks import listops, listops_trees
from nam_jax.training import whole_files


def text(tokens: np.ndarray) -> str:
  """An expression as the benchmark's files write it.

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
    pairs = zip(expressions.rows(), expressions.labels, strict=True)
    lines = [listops.HEADER, *(f"{text(row)}\t{label}" for row, label in pairs)]
    whole_files.write_text(
      directory / listops.FILES[split], "\r\n".join([*lines, ""])
    )


def main(arguments: Sequence[str] | None = None) -> None:
  """Runs the command line."""
  parser = tool.make_parser(
    __doc__,
    "python -m lra_tasks.listops_generator",
    listops_trees.Settings.__doc__,
  )
  parser.add_argument("--output_dir", type=pathlib.Path, required=True)
  for field in dataclasses.fields(listops_trees.Settings):
    parser.add_argument(
      f"--{field.name}", type=int, default=field.default, help=" "
    )
  tool.run(parser, _write, arguments)


def _write(options) -> None:
  settings = vars(options)
  directory = settings.pop("output_dir")
  write(directory, listops_trees.generate(listops_trees.Settings(**settings)))


if __name__ == "__main__":
  main()
