"""A batch of stacks, each of its own depth."""

import numpy as np

from algorithmic.tasks import layout


class Stacks:
  """Empty stacks, b of them, with room for n symbols each."""

  def __init__(self, b: int, n: int):
    self._cells = np.zeros((b, n), np.int32)
    self._depth = np.zeros(b, np.int32)
    self._rows = np.arange(b)

  def empty(self) -> np.ndarray:
    """Which stacks hold nothing: bool [b]."""
    return self._depth == 0

  def top(self) -> np.ndarray:
    """The symbols on top [b]; without meaning where a stack is empty."""
    return self._cells[self._rows, self._depth - 1]

  def push(self, symbols: np.ndarray, where: np.ndarray) -> None:
    """Pushes `symbols[b]` onto the stacks chosen by `where`."""
    self._cells[self._rows[where], self._depth[where]] = symbols[where]
    self._depth += where

  def pop(self, where: np.ndarray) -> None:
    """Removes the top of the chosen stacks; an empty one stays empty."""
    self._depth -= where & ~self.empty()

  def top_first(self) -> np.ndarray:
    """The contents from the top down [b n], then PAD."""
    width = self._cells.shape[1]
    held = np.arange(width) < self._depth[:, None]
    return layout.place(self._cells[:, ::-1], held[:, ::-1], 0, width)
