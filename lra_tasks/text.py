"""Text: is a film review good or bad? It is read as bytes (IMDB reviews).

  "Good."  ->  72 112 112 101 47, label 1

An id is the byte's value plus one; 0 is padding. The set has no validation
split, so a tenth of the training reviews is held out. The benchmark validates
on the test reviews instead.
"""

import pathlib
import re
import reprlib

import numpy as np

from data_files import disk, official, tfds_source
from data_files.errors import DataError
from lra_tasks import rows, task

_SPLITS = ("train", "test")
_LABELS = {"neg": 0, "pos": 1}
_VALIDATION = ("held_out", "test")
_REVIEW = re.compile(r"aclImdb/(train|test)/(neg|pos)/[^/]+\.txt")

# The texts and the labels of each split.
_Reviews = dict[str, tuple[list[bytes], list[int]]]


def make_task(
  data_dir: pathlib.Path | None,
  *,
  max_length: int = 1000,
  validation: str = "held_out",
  split_seed: int = 0,
) -> task.Task:
  """The reviews as a task.

  Args:
    data_dir: folder with one of these, directly or in imdb or imdb_reviews:
      aclImdb_v1.tar.gz, imdb_{train,test}.jsonl (also .xz or .gz; fields text
      and label), or imdb_reviews as prepared by TFDS. None to look where TFDS
      keeps its data.
    max_length: bytes per review; longer ones are cut.
    validation: "held_out" for a tenth of each class's training reviews, which
      are not trained on; "test" for the test reviews, as in the benchmark.
    split_seed: decides which reviews are held out.
  """
  if validation not in _VALIDATION:
    raise ValueError(
      f"validation={validation!r} is not one of {', '.join(_VALIDATION)}"
    )
  if validation == "test" and split_seed:
    raise ValueError(
      f"split_seed={split_seed} has no effect with validation='test'"
    )
  path, reader = tfds_source.find(
    "text",
    data_dir,
    ("", "imdb"),
    _READERS,
    ("imdb_reviews", _read_prepared),
    f"download {official.IMDB.url} into a folder, without unpacking it",
  )
  reviews = reader(path)
  train, test = (_rows(path, *reviews[split], max_length) for split in _SPLITS)
  held_out = test
  if validation == "held_out":
    train, held_out = _without_some(path, train, split_seed)
  return task.Task(
    name="text",
    vocab_size=rows.BYTE_VOCAB_SIZE,
    num_classes=2,
    max_length=max_length,
    is_pair=False,
    train=train,
    validation=held_out,
    test=test,
  )


def decode(ids: np.ndarray) -> str:
  """The text of inputs [s]."""
  values = ids[ids != 0] - rows.FIRST_BYTE_ID
  return values.astype(np.uint8).tobytes().decode("utf-8", errors="replace")


def _rows(path, texts: list[bytes], labels: list[int], max_length: int):
  with disk.about(path):
    disk.check_labels(np.array(labels), len(texts), 2)
  return rows.TokenRows(
    *rows.end_to_end(texts),
    np.array(labels),
    max_length,
    first_id=rows.FIRST_BYTE_ID,
  )


def _without_some(path, train: task.Rows, seed: int):
  """The training rows without a tenth of each class, and that tenth."""
  order = np.random.default_rng(seed).permutation(len(train))
  is_held_out = np.zeros(len(train), bool)
  for label in np.unique(train.labels):
    same = order[train.labels[order] == label]
    if len(same) == 1:
      raise DataError(
        f"{path}: label {label} has 1 training review, too few to hold out some"
        " for validation; validation='test' needs none"
      )
    is_held_out[same[: max(1, len(same) // 10)]] = True
  return tuple(
    rows.SomeRows(train, np.flatnonzero(chosen))
    for chosen in (~is_held_out, is_held_out)
  )


def _read_archive(path: pathlib.Path) -> _Reviews:
  """The reviews in the archive, in the order of their names."""
  reviews = {split: ([], []) for split in _SPLITS}
  for name, text in sorted(disk.members(path, _REVIEW)):
    split, folder = _REVIEW.fullmatch(name).groups()
    reviews[split][0].append(text)
    reviews[split][1].append(_LABELS[folder])
  for split, (_, labels) in reviews.items():
    if set(labels) != {0, 1}:
      raise disk.damaged(path, f"{split} must have reviews in both neg and pos")
  return reviews


def _read_json_lines(train: pathlib.Path) -> _Reviews:
  reviews = {split: ([], []) for split in _SPLITS}
  for split, (texts, labels) in reviews.items():
    path = train.with_name(train.name.replace("train", split))
    for where, item, text in disk.json_texts(path):
      label = item.get("label")
      if type(label) is not int or label not in (0, 1):
        raise DataError(
          f"{where}: expected a label 0 or 1, got {reprlib.repr(label)}"
        )
      texts.append(text)
      labels.append(label)
  return reviews


def _read_prepared(folder: pathlib.Path) -> _Reviews:
  return {s: tfds_source.read(folder, s, ("text", "label")) for s in _SPLITS}


_READERS = {
  "aclImdb_v1.tar.gz": _read_archive,
  **{
    f"imdb_train.jsonl{suffix}": _read_json_lines
    for suffix in ("", ".xz", ".gz")
  },
}
