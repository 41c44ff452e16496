"""Dividing classes, and the images of a class, into splits."""

from collections.abc import Sequence

import numpy as np

from data_files.errors import DataError
from fewshot.data import dataset


def hold_out(
  labels: np.ndarray, names: Sequence[str], sizes: Sequence[int], seed: int
) -> list[np.ndarray]:
  """Divides the rows of each class at random.

  Args:
    labels: positions in names.
    names: names of the classes, for errors.
    sizes: images of each class to hold out, for each part.
    seed: the same seed holds out the same rows.

  Returns:
    Row numbers, ascending: first the remaining rows, then the parts.
  """
  rng = np.random.default_rng(seed)
  ends = np.cumsum(sizes)
  parts = [[] for _ in range(len(sizes) + 1)]
  for name, rows in zip(
    names, dataset.rows_by_class(labels, len(names)), strict=True
  ):
    if len(rows) <= ends[-1]:
      raise DataError(
        f"class {name!r:.60} has {len(rows)} images, and"
        f" {' + '.join(map(str, sizes))} are to be held out: it needs"
        f" {ends[-1] + 1} or more"
      )
    *held, rest = np.split(rng.permutation(rows), ends)
    for part, chosen in zip(parts, [rest, *held], strict=True):
      part.append(chosen)
  return [np.sort(np.concatenate(part)) for part in parts]


def select(
  data: np.ndarray,
  labels: np.ndarray,
  names: Sequence[str],
  wanted: Sequence[int],
) -> dataset.Split:
  """The rows of the wanted classes, renumbered in the order of wanted."""
  number = np.full(len(names), -1, np.int32)
  number[list(wanted)] = np.arange(len(wanted))
  new = number[labels]
  rows = np.flatnonzero(new >= 0)
  # Consecutive rows need no copy.
  is_run = rows.size and rows[-1] - rows[0] + 1 == rows.size
  chosen = slice(rows[0], rows[-1] + 1) if is_run else rows
  return dataset.Split(
    data[chosen], new[chosen], tuple(names[i] for i in wanted)
  )


def divide(
  name: str,
  data: np.ndarray,
  labels: np.ndarray,
  names: Sequence[str],
  parts: Sequence[Sequence[int]],
  sizes: Sequence[int],
  seed: int,
) -> dataset.Dataset:
  """All splits from rows of all classes.

  Args:
    name: name of the result.
    data: images or features of all classes.
    labels: positions in names.
    names: names of the classes.
    parts: numbers of the base, val and test classes.
    sizes: images of each base class to hold out for base_val and base_test.
    seed: the same seed holds out the same images.
  """
  base, val, test = (select(data, labels, names, part) for part in parts)
  return dataset.Dataset(name, *hold_out_splits(base, sizes, seed), val, test)


def hold_out_splits(
  split: dataset.Split, sizes: Sequence[int], seed: int
) -> list[dataset.Split]:
  """Like `hold_out`, but returns the splits themselves."""
  return [
    dataset.Split(split.data[rows], split.labels[rows], split.names)
    for rows in hold_out(split.labels, split.names, sizes, seed)
  ]


def turned(split: dataset.Split, quarters: int) -> dataset.Split:
  """The images turned by quarters of a circle, as classes of other names."""
  names = tuple(f"{name}, turned {90 * quarters}" for name in split.names)
  images = np.rot90(split.data, quarters, (1, 2))
  return dataset.Split(images, split.labels, names)
