"""Reduction: a string without its zeros."""

import numpy as np

from algorithmic.tasks import layout, task


class Reduce(task.Task):
  """Leaves out the zeros: `s _ M..M`, as many masks as digits in s.

  The answer fills the first masks, PAD the others, so that the number of masks
  does not reveal the answer's length.

  >>> print(Reduce().example("30057"))
  30057_MMMMM
  30057_357..

  `count="input"`: s has d digits, each 0 with probability 1/2, else uniform in
  1..9. `count="target"`: the answer has d digits, so that a longer sample has a
  longer target, plus binomial(2d, 1/2) zeros, d on average.
  """

  name = "reduce"
  count: str = "input"

  def __post_init__(self):
    if self.count not in ("input", "target"):
      raise ValueError(f"count must be 'input' or 'target', got {self.count!r}")

  def sequence_length(self, digits: int) -> int:
    """s, one delimiter, as many masks."""
    longest = digits if self.count == "input" else 3 * digits
    return 2 * longest + 1

  def question(
    self, rng: np.random.Generator, digits: np.ndarray
  ) -> tuple[np.ndarray, ...]:
    """The string s."""
    if self.count == "input":
      string = layout.random_strings(rng, digits, range(1, 10))
      zero = rng.random(string.shape) < 0.5
      return (np.where(zero & (string != layout.PAD), 0, string),)
    lengths = digits + rng.binomial(2 * digits, 0.5)
    string = layout.random_strings(rng, lengths, range(1, 10))
    # The d real columns with the smallest keys are the ones that are not 0.
    keys = np.where(string != layout.PAD, rng.random(string.shape), 1.0)
    rank = np.argsort(np.argsort(keys, axis=1), axis=1)
    zero = (rank >= digits[:, None]) & (string != layout.PAD)
    return (np.where(zero, 0, string),)

  def complete(self, string: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`s _ M..M` and `s _ (s without zeros) PAD..`."""
    given = string != layout.PAD
    answer = layout.place(string, given & (string != 0), 0, string.shape[1])
    return (
      layout.join(string, layout.DELIMITER, layout.masks(given)),
      layout.join(string, layout.DELIMITER, answer),
    )
