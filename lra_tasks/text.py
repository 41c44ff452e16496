"""Text: is a film review good or bad, read byte by byte (IMDB reviews).

  "Good."  ->  72 112 112 101 47, label 1

An id is the byte's value plus one; 0 is padding. As in the benchmark, the
validation rows are the test rows: the set has no third split.
"""

import pathlib
import re

import numpy as np

from data_files import disk, official, prepared
from lra_tasks import rows, task

_NAME = "imdb_reviews"
_SPLITS = ("train", "test")
_LABELS = {"neg": 0, "pos": 1}
_REVIEW = re.compile(r"aclImdb/(train|test)/(neg|pos)/[^/]+\.txt")

# The texts and the labels of a split.
_Reviews = tuple[list[bytes], list[int]]


def make_task(
  data_dir: pathlib.Path | None, *, max_length: int = 1000
) -> task.Task:
  """The task imdb_reviews.

  Args:
    data_dir: folder with one of these, by itself or in imdb or imdb_reviews:
      aclImdb_v1.tar.gz, its folder aclImdb, imdb_{train,test}.jsonl (also .xz
      or .gz; fields text and label), or what tensorflow_datasets prepared.
    max_length: bytes per review; longer ones are cut.
  """
  path, pattern = disk.find(
    _NAME,
    data_dir,
    ("", "imdb", _NAME),
    _READERS,
    f"Fetch {official.IMDB.url} into that folder; it need not be unpacked",
  )
  splits = _READERS[pattern](path)
  train, test = (_rows(*splits[split], max_length) for split in _SPLITS)
  return task.Task(
    name=_NAME,
    vocab_size=rows.BYTE_VOCAB_SIZE,
    num_classes=2,
    max_length=max_length,
    is_pair=False,
    train=train,
    validation=test,
    test=test,
  )


def decode(ids: np.ndarray) -> str:
  """The text of inputs [s]."""
  values = ids[ids != 0] - rows.FIRST_BYTE_ID
  return values.astype(np.uint8).tobytes().decode("utf-8", errors="replace")


def _rows(texts: list[bytes], labels: list[int], max_length: int):
  return rows.TokenRows(
    *rows.end_to_end(texts),
    np.array(labels),
    max_length,
    first_id=rows.FIRST_BYTE_ID,
  )


def _read_official(path: pathlib.Path) -> dict[str, _Reviews]:
  """From the archive or its folder; in the order of the names."""
  texts = dict(disk.members(path, _REVIEW))
  splits = {split: ([], []) for split in _SPLITS}
  for name in sorted(texts):
    _, split, folder, _ = name.split("/")
    splits[split][0].append(texts[name])
    splits[split][1].append(_LABELS[folder])
  for split, (_, labels) in splits.items():
    if set(labels) != {0, 1}:
      raise disk.damaged(path, f"{split} needs reviews in neg and in pos")
  return splits


def _read_json_lines(train: pathlib.Path) -> dict[str, _Reviews]:
  splits = {}
  for split in _SPLITS:
    texts, labels = [], []
    path = train.with_name(train.name.replace("train", split))
    for where, item in disk.json_lines(path):
      texts.append(disk.json_text(where, item))
      labels.append(disk.checked_label(where, item.get("label"), 2))
    splits[split] = texts, labels
  return splits


def _read_prepared(shard: pathlib.Path) -> dict[str, _Reviews]:
  splits = {}
  for split in _SPLITS:
    texts, labels = [], []
    for where, example in prepared.examples(shard.parent, _NAME, split):
      texts.append(prepared.content(where, example, "text"))
      labels.append(prepared.label(where, example, 2))
    splits[split] = texts, labels
  return splits


_READERS = {
  "aclImdb": _read_official,
  "aclImdb_v1.tar.gz": _read_official,
  "imdb_train.jsonl": _read_json_lines,
  "imdb_train.jsonl.xz": _read_json_lines,
  "imdb_train.jsonl.gz": _read_json_lines,
  "imdb_reviews-train.*-of-*": _read_prepared,
  "plain_text/*/imdb_reviews-train.*-of-*": _read_prepared,
}
