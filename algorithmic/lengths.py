"""The length curriculum: short samples first."""

import math


def max_digits(
  progress: float, start: int = 2, end: int = 10, full_at: float = 2 / 3
) -> int:
  """The most digits a training sample may have at this point of the run.

  Grows linearly from `start` at progress 0 to `end` at progress `full_at`;
  `start == end` means no curriculum.
  """
  if not 0.0 <= progress <= 1.0:
    raise ValueError(f"progress must be in [0, 1], got {progress}")
  if not 1 <= start <= end:
    raise ValueError(f"need 1 <= start <= end, got start {start}, end {end}")
  if not 0.0 < full_at <= 1.0:
    raise ValueError(f"full_at must be in (0, 1], got {full_at}")
  return math.floor(start + (end - start) * min(progress / full_at, 1.0))
