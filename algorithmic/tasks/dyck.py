"""Closing brackets of four kinds (Dyck-4)."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import layout, stacks, task

KINDS = 4


@dataclasses.dataclass(frozen=True)
class Dyck(task.Task):
  """Closes a prefix of d brackets: `_ s _ M..M E`, as many masks as brackets.

  Tokens 0..3 open, 4..7 close. The answer closes what is still open, innermost
  first; PAD fills the masks left over, so their number does not tell the depth.

  >>> print(Dyck().example("([]{<"))
  _([]{<_MMMMME
  _([]{<_>})..E

  Each bracket of a prefix opens a uniform kind with probability 2/3, and always
  where nothing is open; else it closes the innermost.
  """

  name: ClassVar[str] = "dyck"
  symbols: ClassVar[str] = "([{<)]}>89_.SEM?"

  def sequence_length(self, digits: int) -> int:
    """d brackets, d masks, two delimiters, END."""
    return 2 * digits + 3

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """A random prefix of a Dyck word."""
    kinds = layout.random_strings(rng, digits, range(KINDS))
    prefix, opened = np.empty_like(kinds), stacks.Stacks(*kinds.shape)
    for column, kind in enumerate(kinds.T):
      opens = opened.empty() | (rng.random(digits.size) < 2 / 3)
      prefix[:, column] = np.where(opens, kind, opened.top() + KINDS)
      opened.push(kind, opens)
      opened.pop(~opens)
    return (layout.keep_first(prefix, digits),)

  def complete(self, prefix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_ s _ M..M E` and `_ s _ (closers) PAD.. E`."""
    opened = stacks.Stacks(*prefix.shape)
    for bracket in prefix.T:
      opened.push(bracket + KINDS, bracket < KINDS)
      opened.pop((bracket >= KINDS) & (bracket < 2 * KINDS))
    given = layout.join(layout.DELIMITER, prefix, layout.DELIMITER)
    return layout.complete(given, opened.top_first(), prefix != layout.PAD)
