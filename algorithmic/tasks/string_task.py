"""Tasks whose question is one string: `_ s _ M..M E`, one mask per answer."""

import dataclasses
from typing import ClassVar

import numpy as np

from algorithmic.tasks import layout, task


@dataclasses.dataclass(frozen=True)
class StringTask(task.Task):
  """d random symbols; a subclass gives the answer to them."""

  alphabet: ClassVar[range] = range(10)

  def answer(self, string: np.ndarray) -> np.ndarray:
    """The answer [b v] to a string [b w], with PAD in unused columns."""
    raise NotImplementedError

  def sequence_length(self, digits: int) -> int:
    """Two strings of d symbols, two delimiters, END."""
    return 2 * digits + 3

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """A uniformly random string of the given length."""
    return (layout.random_strings(rng, digits, self.alphabet),)

  def complete(self, string: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`_ s _ M..M E` and `_ s _ answer E`."""
    answer = self.answer(string)
    given = layout.join(layout.DELIMITER, string, layout.DELIMITER)
    return layout.complete(given, answer, answer != layout.PAD)


@dataclasses.dataclass(frozen=True)
class VerdictTask(StringTask):
  """A string task whose answer is a single symbol."""

  def sequence_length(self, digits: int) -> int:
    """One string of d symbols, two delimiters, one answer, END."""
    return digits + 4
