"""The tokens, and how to combine rows of different lengths.

A batch of strings is an array [b w]; a string shorter than w has PAD in the
unused columns. Placing two such arrays side by side leaves gaps; `place` closes
them.
"""

import numpy as np

# 0..9 are the digits.
DELIMITER, PAD, START, END, MASK, SPARE = range(10, 16)
VOCAB_SIZE = 16
SYMBOLS = "0123456789_.SEM?"


def letters(count: int, capital: bool = False) -> str:
  """The first so many letters of Unicode, without those of SYMBOLS."""
  is_kind = str.isupper if capital else str.islower
  known = (chr(code) for code in range(ord("A"), 0x800))
  found = [c for c in known if is_kind(c) and c not in SYMBOLS]
  return "".join(found[:count])


def keep_first(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
  """Keeps the first `lengths[b]` columns of each row; the rest is PAD."""
  return np.where(np.arange(values.shape[1]) < lengths[:, None], values, PAD)


def random_strings(
  rng: np.random.Generator, lengths: np.ndarray, alphabet: range
) -> np.ndarray:
  """Uniform strings [b w] over a range of tokens, one per length [b]."""
  shape = (lengths.size, int(lengths.max()))
  values = rng.integers(alphabet.start, alphabet.stop, shape, dtype=np.int32)
  return keep_first(values, lengths)


def join(*parts: np.ndarray | int) -> np.ndarray:
  """Concatenates rows: arrays [b w], or one token for every row."""
  rows = next(len(part) for part in parts if isinstance(part, np.ndarray))
  columns = [np.full((rows, 1), p) if isinstance(p, int) else p for p in parts]
  return np.concatenate(columns, axis=1, dtype=np.int32)


def masks(unknown: np.ndarray) -> np.ndarray:
  """MASK where something is unknown [b w], PAD elsewhere."""
  return np.where(unknown, MASK, PAD)


def until_pad(inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
  """The masks [b s] up to the first one whose target is PAD, and that one.

  Whoever knows where an answer ends need not prove it at every later mask.
  """
  ended = (inputs == MASK) & (targets == PAD)
  return (inputs == MASK) & (np.cumsum(ended, axis=1) - ended == 0)


def complete(
  given: np.ndarray, answer: np.ndarray, unknown: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
  """Inputs `given M..M E` with masks at `unknown`, targets `given answer E`."""
  return join(given, masks(unknown), END), join(given, answer, END)


def place(
  rows: np.ndarray, real: np.ndarray, offset: np.ndarray | int, width: int
) -> np.ndarray:
  """Moves the real tokens [b w] together, starting at `offset`: [b width]."""
  column = np.cumsum(real, axis=1) - 1 + np.reshape(offset, (-1, 1))
  placed = np.full((len(rows), width), PAD, np.int32)
  placed[np.nonzero(real)[0], column[real]] = rows[real]
  return placed
