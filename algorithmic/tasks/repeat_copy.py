"""Copying a string several times."""

import numpy as np

from algorithmic.tasks import layout, task


class RepeatCopy(task.Task):
  """Repeats d digits n times, n uniform in 1..max_repeats: `_ n _ s _ M..M E`.

  >>> print(RepeatCopy().example("2", "307"))
  _2_307_MMMMMME
  _2_307_307307E
  """

  name = "repeat_copy"
  max_repeats: int = 3

  def __post_init__(self):
    if not 1 <= self.max_repeats <= 9:
      raise ValueError(f"max_repeats must be in 1..9, got {self.max_repeats}")

  def sequence_length(self, digits: int) -> int:
    """n, s, its repetitions, three delimiters, END."""
    return (1 + self.max_repeats) * digits + 5

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """The number of repetitions and the string."""
    repeats = rng.integers(1, self.max_repeats + 1, (digits.size, 1))
    return repeats, layout.random_strings(rng, digits, range(10))

  def complete(
    self, repeats: np.ndarray, string: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """`_ n _ s _ M..M E` and `_ n _ s _ s..s E`."""
    tiles = np.tile(string, int(repeats.max()))
    answer = layout.keep_first(tiles, repeats[:, 0] * string.shape[1])
    bar = layout.DELIMITER
    given = layout.join(bar, repeats, bar, string, bar)
    return layout.complete(given, answer, answer != layout.PAD)
