"""Rows in memory: sequences stored end to end, pairs of them, and images."""

import math
from collections.abc import Collection

import numpy as np

from lra_tasks import task

# Text is a sequence of bytes, and a byte's id is one more: 0 is padding.
FIRST_BYTE_ID = 1
BYTE_VOCAB_SIZE = 257


class Sequences:
  """Sequences of different lengths, cut or padded on access."""

  def __init__(
    self,
    tokens: np.ndarray,
    offsets: np.ndarray,
    max_length: int,
    *,
    first_id: int = 0,
    lengths: np.ndarray | None = None,
  ):
    """Sequence i is tokens[offsets[i] : offsets[i + 1]].

    Args:
      tokens: tokens of all sequences end to end, in any integer type.
      offsets: one more than the number of sequences.
      max_length: sequences are cut or padded on the right to this length.
      first_id: the id of token 0; the id 0 is padding.
      lengths: tokens per sequence, if those in `tokens` are already cut.
    """
    if max_length < 1:
      raise ValueError(f"max_length must be at least 1, got {max_length}")
    self._tokens, self._offsets = tokens, offsets
    self._max_length, self._first_id = max_length, first_id
    self.lengths = np.diff(offsets) if lengths is None else lengths
    self.content = (tokens, offsets, self.lengths)

  def padded(self, index: int) -> tuple[np.ndarray, np.ndarray]:
    """The ids of a sequence, int32 [s], and their mask."""
    start, end = self._offsets[index], self._offsets[index + 1]
    count = min(end - start, self._max_length)
    inputs = np.zeros(self._max_length, np.int32)
    inputs[:count] = self._tokens[start : start + count]
    inputs[:count] += self._first_id
    return inputs, np.arange(self._max_length) < count


class LabelledRows:
  """What all rows share: labels, and an index checked like a list's."""

  def __init__(self, labels: np.ndarray):
    """Takes one label per row."""
    self._labels = np.asarray(labels, np.int32)

  def __len__(self) -> int:
    return len(self._labels)

  def __getitem__(self, index: int) -> dict[str, np.ndarray]:
    index = range(len(self))[index]
    inputs, mask = self._inputs_and_mask(index)
    return {"inputs": inputs, "mask": mask, "label": self._labels[index]}

  @property
  def labels(self) -> np.ndarray:
    """The labels of all rows, int32 [rows]."""
    return self._labels

  @property
  def content(self) -> tuple[np.ndarray, ...]:
    """The labels, and the arrays that all inputs come from."""
    return self._labels, *self._inputs_content()


class TokenRows(LabelledRows):
  """Sequences of different lengths, each with a label."""

  def __init__(
    self,
    tokens: np.ndarray,
    offsets: np.ndarray,
    labels: np.ndarray,
    max_length: int,
    *,
    first_id: int = 0,
  ):
    """Row i is sequence i and labels[i]; see `Sequences`."""
    super().__init__(labels)
    self._sequences = Sequences(tokens, offsets, max_length, first_id=first_id)

  @property
  def lengths(self) -> np.ndarray:
    """Tokens per row before cutting, [rows]."""
    return self._sequences.lengths

  def _inputs_and_mask(self, index):
    return self._sequences.padded(index)

  def _inputs_content(self):
    return self._sequences.content


class PairRows(LabelledRows):
  """Pairs of documents, each pair with a label."""

  def __init__(
    self, documents: Sequences, pairs: np.ndarray, labels: np.ndarray
  ):
    """Row i compares documents pairs[i, 0] and pairs[i, 1]."""
    super().__init__(labels)
    self._documents, self._pairs = documents, pairs

  @property
  def lengths(self) -> np.ndarray:
    """Tokens per document before cutting, [rows 2]."""
    return self._documents.lengths[self._pairs]

  def _inputs_and_mask(self, index):
    documents = map(self._documents.padded, self._pairs[index])
    return tuple(np.stack(both) for both in zip(*documents, strict=True))

  def _inputs_content(self):
    return self._pairs, *self._documents.content


class ImageRows(LabelledRows):
  """Gray images as sequences of pixels, row by row; every pixel is real."""

  def __init__(self, images: np.ndarray, labels: np.ndarray):
    """Takes images, uint8 [rows height width], and one label per image."""
    super().__init__(labels)
    self._images = images.reshape(len(images), math.prod(images.shape[1:]))

  @property
  def lengths(self) -> np.ndarray:
    """Pixels per image, [rows]."""
    return np.full(len(self), self._images.shape[1])

  def _inputs_and_mask(self, index):
    inputs = self._images[index].astype(np.int32)
    return inputs, np.ones(inputs.shape, bool)

  def _inputs_content(self):
    return (self._images,)


class SomeRows(LabelledRows):
  """Some of the rows, in any order."""

  def __init__(self, rows: task.Rows, indices: np.ndarray):
    """Row i is rows[indices[i]]."""
    super().__init__(rows.labels[indices])
    self._rows, self._indices = rows, indices

  def __getitem__(self, index: int) -> dict[str, np.ndarray]:
    return self._rows[int(self._indices[index])]

  @property
  def lengths(self) -> np.ndarray:
    """Tokens per row before cutting, [rows]; [rows 2] for two documents."""
    return self._rows.lengths[self._indices]

  def _inputs_content(self):
    return self._indices, *self._rows.content


def end_to_end(texts: Collection[bytes]) -> tuple[np.ndarray, np.ndarray]:
  """The bytes of all texts, uint8, and the offsets where texts start."""
  offsets = np.cumsum([0, *map(len, texts)])
  return np.frombuffer(b"".join(texts), np.uint8), offsets
