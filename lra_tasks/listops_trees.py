"""ListOps expressions, drawn as the benchmark draws them.

An expression is a digit, or an operator with its arguments:

  [MAX 2 9 [MIN 4 7 ] 0 ]    is 9

Each node of the tree is an operator with probability 1/4, else a digit; at
max_depth always a digit. An operator has 2 to max_args arguments. MED rounds
the median down, SM is the sum modulo 10. Expressions that are too short, too
long or repeated are discarded.
"""

import dataclasses
import hashlib
import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
# The word of each id; 0 is padding.
WORDS = (None, *"0123456789", *OPERATORS, "]")
CLOSE = len(WORDS) - 1
FIRST_OPERATOR = WORDS.index(OPERATORS[0])
SPLITS = ("train", "validation", "test")

# Trees started at a time, and in how many of them enough must be new.
_TREES = 4096
_PATIENCE, _ENOUGH = 64 * _TREES, 16


@dataclasses.dataclass(frozen=True)
class Settings:
  """What to draw.

  Attributes:
    max_length: expressions have fewer words than this.
    min_length: expressions have more words than this.
    max_depth: levels of the tree, digits included.
    max_args: most arguments of an operator.
    num_train: expressions to train on.
    num_validation: expressions that select a checkpoint.
    num_test: expressions to test on.
    seed: determines the expressions.
  """

  max_length: int = 2000
  min_length: int = 500
  max_depth: int = 10
  max_args: int = 10
  num_train: int = 96_000
  num_validation: int = 2_000
  num_test: int = 2_000
  seed: int = 0

  def __post_init__(self):
    if not 0 <= self.min_length < self.max_length - 1:
      raise ValueError(
        f"no length is above min_length {self.min_length} and below "
        f"max_length {self.max_length}"
      )
    lowest = {"max_depth": 1, "max_args": 2, "seed": 0}
    lowest |= dict.fromkeys(("num_train", "num_validation", "num_test"), 1)
    for name, low in lowest.items():
      if getattr(self, name) < low:
        raise ValueError(f"{name} must be >= {low}, got {getattr(self, name)}")


class Expressions(NamedTuple):
  """Expressions end to end: number i is tokens[offsets[i] : offsets[i + 1]]."""

  tokens: np.ndarray
  offsets: np.ndarray
  labels: np.ndarray

  def rows(self) -> list[np.ndarray]:
    """The tokens of each expression."""
    return np.split(self.tokens, self.offsets[1:])[:-1]


class _Level(NamedTuple):
  """The nodes at one depth of many trees, from left to right.

  `trees` has the tree of every node, `arguments` one entry per operator.
  """

  trees: np.ndarray
  is_operator: np.ndarray
  arguments: np.ndarray


def generate(settings: Settings) -> dict[str, Expressions]:
  """The splits train, validation and test; no expression occurs twice.

  The result depends only on the settings.

  Raises:
    ValueError: the settings do not allow that many different expressions.
  """
  sizes = [settings.num_train, settings.num_validation, settings.num_test]
  rows, labels = _distinct(settings, sum(sizes))
  # The expressions found first are the likelier ones, so shuffle them.
  order = np.random.default_rng([settings.seed, 1]).permutation(sum(sizes))
  parts = np.split(order, np.cumsum(sizes[:-1]))
  return {
    split: _join([rows[i] for i in part], [labels[i] for i in part])
    for split, part in zip(SPLITS, parts, strict=True)
  }


def values(tokens: np.ndarray, depth: np.ndarray) -> np.ndarray:
  """The values of well-formed expressions that stand end to end.

  Args:
    tokens: uint8 [n].
    depth: operators that are open after each token, [n].
  """
  order = np.argsort(depth.astype(np.int16), kind="stable")
  ends = np.cumsum(np.bincount(depth))
  inner = np.empty(0, np.int64)
  for level in reversed(np.split(tokens[order], ends[:-1])):
    # Each operator of this level is followed by its arguments: digits, and
    # the last words of operators one level deeper, in their order.
    level = level.astype(np.int64)
    is_inner = level == CLOSE
    is_operator = (level >= FIRST_OPERATOR) & ~is_inner
    found = level - 1
    found[is_inner] = inner
    starts = np.flatnonzero(is_operator)
    if not starts.size:
      return found
    arguments = np.diff(starts, append=level.size) - 1
    inner = _apply(
      level[starts] - FIRST_OPERATOR,
      found[~is_operator],
      np.cumsum(arguments) - arguments,
      arguments,
    )


def _distinct(
  settings: Settings, total: int
) -> tuple[list[np.ndarray], list[int]]:
  """The first `total` different expressions, and their values."""
  seen, rows, labels, before = set(), [], [], 0
  for batch in itertools.count():
    begun = batch * _TREES
    if begun and begun % _PATIENCE == 0:
      if len(rows) < before + _ENOUGH:
        raise ValueError(
          f"found only {len(rows)} different expressions in {begun} trees, "
          f"not {total}; allow more lengths, arguments or depth: {settings}"
        )
      before = len(rows)
    found = _draw(np.random.default_rng([settings.seed, 0, batch]), settings)
    for row, label in zip(found.rows(), found.labels, strict=True):
      key = hashlib.blake2b(row, digest_size=16).digest()
      if key in seen:
        continue
      seen.add(key)
      rows.append(row)
      labels.append(label)
      if len(rows) == total:
        return rows, labels


def _draw(rng: np.random.Generator, settings: Settings) -> Expressions:
  """The expressions of suitable length among _TREES trees."""
  levels, lengths = _draw_shapes(rng, settings)
  kept = (settings.min_length < lengths) & (lengths < settings.max_length)
  levels = [_keep(level, kept) for level in levels]
  sizes, values, words = _fill(rng, levels)
  offsets = np.append(0, np.cumsum(sizes[0]))
  tokens = np.empty(offsets[-1], np.uint8)
  starts = offsets[:-1]
  for depth, level in enumerate(levels):
    tokens[starts] = words[depth]
    if not level.arguments.size:
      break
    starts, size = starts[level.is_operator], sizes[depth][level.is_operator]
    tokens[starts + size - 1] = CLOSE
    below = sizes[depth + 1]
    before = np.cumsum(below) - below
    first = before[np.cumsum(level.arguments) - level.arguments]
    starts = np.repeat(starts + 1 - first, level.arguments) + before
  return Expressions(tokens, offsets, values[0])


def _draw_shapes(
  rng: np.random.Generator, settings: Settings
) -> tuple[list[_Level], np.ndarray]:
  """Trees without their words, level by level, and their lengths.

  A tree that reaches max_length grows no further.
  """
  levels, trees = [], np.arange(_TREES)
  lengths = np.ones(_TREES, np.int64)
  for depth in range(1, settings.max_depth + 1):
    is_operator = np.zeros(trees.size, bool)
    if depth < settings.max_depth:
      is_operator = rng.random(trees.size) <= 0.25
    parents = trees[is_operator]
    arguments = 2 + _integers(rng, settings.max_args - 1, parents.size)
    levels.append(_Level(trees, is_operator, arguments))
    lengths += np.bincount(parents, arguments + 1, _TREES).astype(np.int64)
    grows = lengths[parents] < settings.max_length
    trees = np.repeat(parents[grows], arguments[grows])
  return levels, lengths


def _keep(level: _Level, kept: np.ndarray) -> _Level:
  chosen = kept[level.trees]
  return _Level(
    level.trees[chosen],
    level.is_operator[chosen],
    level.arguments[chosen[level.is_operator]],
  )


def _fill(rng: np.random.Generator, levels: list[_Level]) -> tuple[list, ...]:
  """Draws the words; returns each level's node sizes, values, first words."""
  sizes, values, words = [], [], []
  for level in reversed(levels):
    size = np.ones(level.trees.size, np.int64)
    value = _integers(rng, 10, size.size)
    word = value + 1
    if level.arguments.size:
      kinds = _integers(rng, len(OPERATORS), level.arguments.size)
      starts = np.cumsum(level.arguments) - level.arguments
      size[level.is_operator] = 2 + np.add.reduceat(sizes[0], starts)
      value[level.is_operator] = _apply(
        kinds, values[0], starts, level.arguments
      )
      word[level.is_operator] = FIRST_OPERATOR + kinds
    sizes.insert(0, size)
    values.insert(0, value)
    words.insert(0, word)
  return sizes, values, words


def _apply(
  kinds: np.ndarray,
  values: np.ndarray,
  starts: np.ndarray,
  arguments: np.ndarray,
) -> np.ndarray:
  """The operators' values, from their arguments, values[starts ...]."""
  base = np.repeat(10 * np.arange(kinds.size), arguments)
  ordered = np.sort(base + values) - base
  lower = ordered[starts + (arguments - 1) // 2]
  upper = ordered[starts + arguments // 2]
  return np.choose(
    kinds,
    [
      np.minimum.reduceat(values, starts),
      np.maximum.reduceat(values, starts),
      (lower + upper) // 2,
      np.add.reduceat(values, starts) % 10,
    ],
  )


def _integers(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
  """Integers below count, from doubles: the same in every numpy version."""
  return (rng.random(size) * count).astype(np.int64)


def _join(rows: Sequence[np.ndarray], labels: Sequence[int]) -> Expressions:
  offsets = np.append(0, np.cumsum([row.size for row in rows]))
  return Expressions(np.concatenate(rows), offsets, np.array(labels, np.int32))
