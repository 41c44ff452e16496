"""Random tasks: a few labelled examples of new classes, and queries.

An episode has `num_way` novel classes with `num_shot` supports each, and
queries of these classes and of the base classes. It holds row numbers of two
splits, so that features can be computed once and looked up. NumPy draws many
episodes at a time, the same on every machine.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from fewshot.data.dataset import DataError, Split

_AT_ONCE = 500  # episodes drawn at once, which bounds the memory


class Size(NamedTuple):
  """How large an episode is."""

  num_way: int = 5  # novel classes
  num_shot: int = 1  # supports of each
  num_query: int = 15  # queries of each
  num_base_query: int = 75  # queries of all base classes together


class ByClass(NamedTuple):
  """The rows of a split by class; classes may differ in size."""

  rows: Int[np.ndarray, "c m"]  # padded with 0
  counts: Int[np.ndarray, " c"]


class Episodes(NamedTuple):
  """Row numbers and labels of many episodes."""

  classes: Int[np.ndarray, "e n"]  # the novel classes, in their split
  support: Int[np.ndarray, "e n k"]  # rows of that split
  query: Int[np.ndarray, "e n q"]  # rows of that split
  base_query: Int[np.ndarray, "e r"]  # rows of the split of base classes
  base_label: Int[np.ndarray, "e r"]


def by_class(split: Split) -> ByClass:
  """The table that episodes are drawn from."""
  groups = split.rows_by_class()
  rows = np.zeros((len(groups), max(map(len, groups))), np.int32)
  for row, group in zip(rows, groups, strict=True):
    row[: len(group)] = group
  return ByClass(rows, split.counts().astype(np.int32))


def check(split: Split, size: Size, what: str) -> None:
  """Raises `DataError` if the split cannot fill episodes of this size."""
  if len(split.names) < size.num_way:
    raise DataError(
      f"{what} has {len(split.names)} classes; episodes need {size.num_way}"
      " (--config.num_way)"
    )
  need, counts = size.num_shot + size.num_query, split.counts()
  if counts.min() < need:
    name, count = split.names[int(counts.argmin())], counts.min()
    raise DataError(
      f"{what}: class {name!r:.60} has {count} images; an episode of"
      f" {size.num_shot} shots and {size.num_query} queries needs {need}"
      " (--config.shots, --config.num_query)"
    )


def sample(
  seed: int, novel: ByClass, base: ByClass, size: Size, number: int
) -> Episodes:
  """Episodes with novel classes of one split and base classes of another.

  Supports and queries of a class are different rows. Base classes are drawn
  with replacement, and their rows repeat only once a class is used up.

  Args:
    seed: the same seed gives the same episodes; a larger number starts with
      the same ones.
    novel: the split of the novel classes.
    base: the split of the base queries.
    size: numbers of classes, supports and queries.
    number: how many episodes.
  """
  parts = []
  for start in range(0, number, _AT_ONCE):
    rng = np.random.default_rng([seed, start])
    drawn = _sample(rng, novel, base, size, _AT_ONCE, hide=False)
    parts.append(Episodes(*(array[: number - start] for array in drawn)))
  return Episodes(*map(np.concatenate, zip(*parts, strict=True)))


def sample_training(
  seed: int, step: int, base: ByClass, size: Size, number: int
) -> Episodes:
  """Episodes in which some base classes act as novel ones.

  No base query belongs to these classes.
  """
  rng = np.random.default_rng([seed, step])
  return _sample(rng, base, base, size, number, hide=True)


def _sample(rng, novel, base, size, number, hide):
  num_classes = len(novel.counts)
  order = np.argsort(rng.random((number, num_classes), np.float32), axis=1)
  classes = order[:, : size.num_way].astype(np.int32)
  chosen = _drawn(
    rng,
    novel.rows[classes],
    novel.counts[classes],
    size.num_shot + size.num_query,
  )
  shape = (number, size.num_base_query)
  if hide:
    shown = rng.integers(size.num_way, num_classes, shape)
    label = np.take_along_axis(order, shown, axis=1).astype(np.int32)
  else:
    label = rng.integers(0, len(base.counts), shape, np.int32)
  return Episodes(
    classes=classes,
    support=chosen[..., : size.num_shot],
    query=chosen[..., size.num_shot :],
    base_query=_distinct_rows(rng, base, label),
    base_label=label,
  )


def _drawn(rng, rows, counts, number):
  """Random rows of each class without repetition: [... m] to [... number]."""
  is_row = np.arange(rows.shape[-1]) < counts[..., None]
  order = np.where(is_row, rng.random(rows.shape, np.float32), np.float32(2))
  if number < rows.shape[-1]:
    first = np.argpartition(order, number - 1, axis=-1)[..., :number]
  else:
    first = np.broadcast_to(np.arange(rows.shape[-1]), rows.shape)
  order = np.argsort(np.take_along_axis(order, first, axis=-1), axis=-1)
  first = np.take_along_axis(first, order, axis=-1)
  return np.take_along_axis(rows, first, axis=-1)


def _distinct_rows(rng, base, label):
  """A row for each label; the i-th of a class takes its i-th drawn row."""
  same = label[:, :, None] == label[:, None, :]
  earlier = np.sum(np.tril(same, -1), axis=2)
  number = int(min(earlier.max(initial=0) + 1, base.rows.shape[1]))
  shape = (len(label), *base.rows.shape)
  drawn = _drawn(
    rng, np.broadcast_to(base.rows, shape), base.counts[None], number
  )
  rank = earlier % np.minimum(base.counts[label], number)
  return drawn[np.arange(len(label))[:, None], label, rank]
