"""What a task of the Long Range Arena is: rows in three splits.

A row is a dict of numpy arrays:

  inputs  int32 [s], token ids, padded with 0 to the task's max_length;
          [2 s] where two documents are compared
  mask    bool, of the same shape: True at real tokens
  label   int32 scalar
"""

import dataclasses
from typing import Protocol

import numpy as np


class Rows(Protocol):
  """Random access to the rows of a split."""

  def __len__(self) -> int: ...

  def __getitem__(self, index: int) -> dict[str, np.ndarray]: ...

  @property
  def labels(self) -> np.ndarray:
    """The labels of all rows, int32 [rows]."""
    ...

  @property
  def lengths(self) -> np.ndarray:
    """Tokens per row before cutting, [rows]; [rows 2] for two documents."""
    ...

  @property
  def content(self) -> tuple[np.ndarray, ...]:
    """The labels, and arrays that all inputs come from: the fingerprint's."""
    ...


@dataclasses.dataclass(frozen=True)
class Task:
  """Splits and sizes.

  Attributes:
    name: listops, text, retrieval, image or pathfinder.
    vocab_size: number of token ids, padding included.
    num_classes: number of labels.
    max_length: length of every row's inputs.
    is_pair: whether inputs are [2 s], two documents.
    train: the rows to train on.
    validation: the rows that select a checkpoint.
    test: the rows to test on.
  """

  name: str
  vocab_size: int
  num_classes: int
  max_length: int
  is_pair: bool
  train: Rows
  validation: Rows
  test: Rows
