"""The contents of a stack after a list of pushes and pops."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import layout, stacks, task

POP = 2


@dataclasses.dataclass(frozen=True)
class StackManipulation(task.Task):
  """Runs actions on a stack: `_ stack _ actions _ M..M E`.

  The stack, bottom first, and the actions have d symbols together, at least
  one of them an action: 0 and 1 push themselves, token 2, shown as ^, pops
  (nothing from an empty stack). The answer is the stack, top first; there are
  d masks, and PAD fills those left over. 01 without its top is 0, then two 1
  are pushed:

  >>> print(StackManipulation().example("01", "^11"))
  _01_^11_MMMMME
  _01_^11_110..E
  """

  name: ClassVar[str] = "stack_manipulation"
  symbols: ClassVar[str] = "01^3456789_.SEM?"

  def sequence_length(self, digits: int) -> int:
    """d symbols, d masks, three delimiters, END."""
    return 2 * digits + 4

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
    """Masks, and in their place the stack after the actions, then PAD."""
    steps = layout.join(stack, actions)
    contents = stacks.Stacks(*steps.shape)
    for step in steps.T:
      contents.push(step, step < POP)
      contents.pop(step == POP)
    bar = layout.DELIMITER
    given = layout.join(bar, stack, bar, actions, bar)
    count = (steps != layout.PAD).sum(axis=1)
    unknown = np.arange(steps.shape[1]) < count[:, None]
    return layout.complete(given, contents.top_first(), unknown)
