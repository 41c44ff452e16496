"""The interface of all tasks: masked sequence completion.

A sample is a row of input tokens with MASK at each unknown position, and a row
of target tokens aligned 1:1 with it. `group` and `recall` ask in place: what is
given at a position is the question there. A task defines how to draw a question
and how to complete it; `sample` packs both into a batch of equal width.
"""

import dataclasses
from typing import ClassVar, NamedTuple

import numpy as np

from algorithmic.tasks import layout


class Batch(NamedTuple):
  """b samples of s tokens each."""

  inputs: np.ndarray  # int32 [b s]
  targets: np.ndarray  # int32 [b s]
  mask: np.ndarray  # bool [b s], True at real tokens, False at padding
  loss_mask: (
    np.ndarray
  )  # bool [b s], the positions that loss and accuracy count
  digits: np.ndarray  # int32 [b]


@dataclasses.dataclass(frozen=True)
class Task:
  """Base of all tasks; a subclass defines `name` and the first three methods.

  Every task is a frozen dataclass; its fields are the task's settings.
  """

  name: ClassVar[str]
  vocab_size: ClassVar[int] = layout.VOCAB_SIZE
  symbols: ClassVar[str] = layout.SYMBOLS  # how `show` writes each token

  def __init_subclass__(cls) -> None:
    dataclasses.dataclass(frozen=True)(cls)

  def sequence_length(self, digits: int) -> int:
    """Tokens that the longest sample of this many digits needs."""
    raise NotImplementedError

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """Draws the given strings, each [b w] with PAD in unused columns."""
    raise NotImplementedError

  def complete(self, *question: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets [b w]; PAD columns of the inputs are gaps."""
    raise NotImplementedError

  def counted(self, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The positions [b s] that loss and accuracy count: every mask."""
    del targets
    return inputs == layout.MASK

  def sample(
    self,
    rng: np.random.Generator,
    digits: np.ndarray,
    width: int | None = None,
    shift: bool = True,
  ) -> Batch:
    """Draws one sample per entry of digits [b], padded to `width` tokens.

    With `shift` each sample starts at a random column, so that absolute
    positions carry no information; without it each starts at column 0.
    """
    digits = np.asarray(digits, np.int32)
    if digits.ndim != 1 or digits.size == 0:
      raise ValueError(f"digits must be [b] with b >= 1, got {digits.shape}")
    if digits.min() < 1:
      raise ValueError(f"digits must be at least 1, got {digits.min()}")
    needed = self.sequence_length(int(digits.max()))
    if width is None:
      width = needed
    if width < needed:
      raise ValueError(
        f"width {width} is too small: {self.name} needs {needed}"
      )
    inputs, targets = self.complete(*self.question(rng, digits))
    real = inputs != layout.PAD
    free = width - real.sum(axis=1)
    offset = rng.integers(0, free + 1) if shift else 0
    inputs = layout.place(inputs, real, offset, width)
    targets = layout.place(targets, real, offset, width)
    mask, loss_mask = inputs != layout.PAD, self.counted(inputs, targets)
    return Batch(inputs, targets, mask, loss_mask, digits)

  def show(
    self, inputs: np.ndarray, targets: np.ndarray, loss_mask: np.ndarray
  ) -> str:
    """One sample [s] as two lines; a prediction may replace the targets.

    Outside loss_mask the second line repeats the input.
    """
    lines = inputs, np.where(loss_mask, targets, inputs)
    return "\n".join("".join(self.symbols[t] for t in line) for line in lines)

  def example(self, *question: str) -> str:
    """Completes a question written in `symbols`, and shows it."""
    tokens = [[self.symbols.index(c) for c in text] for text in question]
    inputs, targets = self.complete(*(np.array([t], np.int32) for t in tokens))
    real = inputs[0] != layout.PAD
    inputs, targets = inputs[:, real], targets[:, real]
    asked = (inputs == layout.MASK) | self.counted(inputs, targets)
    return self.show(inputs[0], targets[0], asked[0])
