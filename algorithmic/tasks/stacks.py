"""Tasks that a stack solves."""

import numpy as np

from algorithmic.tasks import layout, task

KINDS = 4
POP = 2


class Stacks:
  """b empty stacks with room for n symbols each."""

  def __init__(self, b: int, n: int):
    self._cells = np.zeros((b, n), np.int32)
    self._depth = np.zeros(b, np.int32)
    self._rows = np.arange(b)

  def empty(self) -> np.ndarray:
    """Which stacks are empty: bool [b]."""
    return self._depth == 0

  def top(self) -> np.ndarray:
    """The symbols on top [b]; meaningless where a stack is empty."""
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


class Dyck(task.Task):
  """Closes a prefix of d brackets: `_ s _ M..M E`, as many masks as brackets.

  Tokens 0..3 open, 4..7 close. The answer closes what is still open, innermost
  first; PAD fills the remaining masks, so their number does not reveal the
  depth.

  >>> print(Dyck().example("([]{<"))
  _([]{<_MMMMME
  _([]{<_>})..E

  Each bracket opens a random kind with probability 2/3, and always if nothing
  is open; otherwise it closes the innermost.
  """

  name = "dyck"
  symbols = "([{<)]}>89_.SEM?"

  def sequence_length(self, digits: int) -> int:
    """d brackets, d masks, two delimiters, END."""
    return 2 * digits + 3

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """A random prefix of a Dyck word."""
    kinds = layout.random_strings(rng, digits, range(KINDS))
    prefix, opened = np.empty_like(kinds), Stacks(*kinds.shape)
    for column, kind in enumerate(kinds.T):
      opens = opened.empty() | (rng.random(digits.size) < 2 / 3)
      prefix[:, column] = np.where(opens, kind, opened.top() + KINDS)
      opened.push(kind, opens)
      opened.pop(~opens)
    return (layout.keep_first(prefix, digits),)

  def complete(self, prefix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_ s _ M..M E` and `_ s _ (closers) PAD.. E`."""
    opened = Stacks(*prefix.shape)
    for bracket in prefix.T:
      opened.push(bracket + KINDS, bracket < KINDS)
      opened.pop((bracket >= KINDS) & (bracket < 2 * KINDS))
    given = layout.join(layout.DELIMITER, prefix, layout.DELIMITER)
    return layout.complete(given, opened.top_first(), prefix != layout.PAD)


class StackManipulation(task.Task):
  """Runs actions on a stack: `_ stack _ actions _ M..M E`.

  The stack, bottom first, and the actions together have d symbols, at least
  one of them an action: 0 and 1 push themselves; token 2, shown as ^, pops
  (nothing from an empty stack). The answer is the stack, top first; there are
  d masks, and PAD fills the remaining ones. 01 without its top is 0, then two
  1s are pushed:

  >>> print(StackManipulation().example("01", "^11"))
  _01_^11_MMMMME
  _01_^11_110..E

  `published=True`, as in the Chomsky suite: there is a mask more, the stack
  always ends with a PAD, and what follows it is not counted.
  """

  name = "stack_manipulation"
  symbols = "01^3456789_.SEM?"
  published: bool = False

  def sequence_length(self, digits: int) -> int:
    """d symbols, d masks, published one more, three delimiters, END."""
    return 2 * digits + 4 + self.published

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """A stack of 0 to d - 1 symbols, and actions for the rest of the d."""
    actions = rng.integers(1, digits + 1)
    stack = layout.random_strings(rng, digits - actions, range(POP))
    return stack, layout.random_strings(rng, actions, range(POP + 1))

  def complete(
    self, stack: np.ndarray, actions: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """Masks as inputs; as targets the stack after the actions, then PAD."""
    steps = layout.join(stack, actions)
    contents = Stacks(*steps.shape)
    for step in steps.T:
      contents.push(step, step < POP)
      contents.pop(step == POP)
    bar = layout.DELIMITER
    given = layout.join(bar, stack, bar, actions, bar)
    answer = layout.join(contents.top_first(), layout.PAD)
    count = (steps != layout.PAD).sum(axis=1) + self.published
    unknown = np.arange(answer.shape[1]) < count[:, None]
    return layout.complete(given, answer, unknown)

  def counted(self, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Every mask; published: those of the stack and of its end."""
    if not self.published:
      return super().counted(inputs, targets)
    return layout.until_pad(inputs, targets)
