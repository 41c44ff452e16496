"""Retrieval: does one paper cite the other? Both are read as bytes (AAN).

Inputs are the first bytes of both papers; an id is the byte's value plus one.
The benchmark's files have five columns, separated by tabs:

  1.0    P05-1066    J93-2003    text of the first    text of the second

Alternatively, the texts are in papers.jsonl (id, text) and the pairs in
pairs_{train,val,test}.tsv, with the header label, citing, candidate.
"""

import pathlib
import reprlib
from collections.abc import Iterator

import numpy as np

from data_files import disk
from data_files.errors import DataError, excerpt
from lra_tasks import rows, task

_FOLDERS = (
  "",
  "tsv_data",
  "lra_release/tsv_data",
  "lra_release/lra_release/tsv_data",
  "citation",
)
_ADVICE = (
  "Download https://storage.googleapis.com/long-range-arena/lra_release.gz, a"
  " .tar.gz, and unpack it into that folder"
)
_LABELS = {b"0": 0, b"0.0": 0, b"1": 1, b"1.0": 1}

# Numbers of two papers and a label, for each pair.
_Pairs = list[tuple[int, int, int]]


def make_task(
  data_dir: pathlib.Path | None, *, max_length: int = 4000
) -> task.Task:
  """The pairs as a task.

  Args:
    data_dir: folder with new_aan_pairs.{train,eval,test}.tsv, or the one the
      benchmark's archive was unpacked in; or with papers.jsonl (also .xz or
      .gz) and pairs_{train,val,test}.tsv, directly or in citation.
    max_length: bytes per paper; longer ones are cut.
  """
  path, reader = disk.find("retrieval", data_dir, _FOLDERS, _READERS, _ADVICE)
  papers = _Papers(max_length)
  splits = [np.array(pairs) for pairs in reader(path, papers)]
  documents = papers.sequences()
  train, validation, test = (
    rows.PairRows(documents, split[:, :2], split[:, 2]) for split in splits
  )
  return task.Task(
    name="retrieval",
    vocab_size=rows.BYTE_VOCAB_SIZE,
    num_classes=2,
    max_length=max_length,
    is_pair=True,
    train=train,
    validation=validation,
    test=test,
  )


class _Papers:
  """The beginnings of all distinct papers, numbered as they come."""

  def __init__(self, max_length: int):
    self._max_length = max_length
    self._numbers = {}

  def number(self, text: bytes) -> int:
    """The number of a paper, assigned if it is new."""
    key = (len(text), text[: self._max_length])
    return self._numbers.setdefault(key, len(self._numbers))

  def sequences(self) -> rows.Sequences:
    lengths, beginnings = zip(*self._numbers, strict=True)
    return rows.Sequences(
      *rows.end_to_end(beginnings),
      self._max_length,
      first_id=rows.FIRST_BYTE_ID,
      lengths=np.array(lengths),
    )


def _read_aan(train: pathlib.Path, papers: _Papers) -> list[_Pairs]:
  splits = []
  for split in ("train", "eval", "test"):
    path = train.with_name(f"new_aan_pairs.{split}.tsv")
    pairs = []
    for where, columns in _table(disk.lines(path), 5):
      label, *ids, first, second = columns
      if any(not i or b" " in i for i in ids):
        raise DataError(f"{where}: expected ids in columns 2 and 3")
      pairs.append(
        (papers.number(first), papers.number(second), _label(where, label))
      )
    splits.append(pairs)
  return splits


def _read_pairs(texts: pathlib.Path, papers: _Papers) -> list[_Pairs]:
  numbers = {}
  for where, item, text in disk.json_texts(texts):
    name = item.get("id")
    key = str(name).encode(errors="replace")
    if not isinstance(name, str | int) or key in numbers:
      raise DataError(
        f"{where}: expected a unique id, got {excerpt(reprlib.repr(name))}"
      )
    numbers[key] = papers.number(text)
  splits = []
  for split in ("train", "val", "test"):
    lines = disk.lines(texts.with_name(f"pairs_{split}.tsv"))
    where, header = next(lines)
    if header.split(b"\t") != [b"label", b"citing", b"candidate"]:
      raise DataError(
        f"{where}: expected the tab-separated header label, citing, candidate"
      )
    pairs = []
    for where, (label, *ids) in _table(lines, 3):
      unknown = [i for i in ids if i not in numbers]
      if unknown:
        raise DataError(f"{where}: {texts.name} has no id {unknown[0]!r:.60}")
      pairs.append((*(numbers[i] for i in ids), _label(where, label)))
    if not pairs:
      raise DataError(f"{where}: expected pairs after the header")
    splits.append(pairs)
  return splits


def _table(
  lines: Iterator[tuple[str, bytes]], width: int
) -> Iterator[tuple[str, list[bytes]]]:
  """Splits lines into columns."""
  for where, line in lines:
    columns = line.split(b"\t")
    if len(columns) != width:
      raise DataError(
        f"{where}: expected {width} tab-separated columns, got {len(columns)}"
      )
    yield where, columns


def _label(where: str, label: bytes) -> int:
  if label not in _LABELS:
    raise DataError(f"{where}: expected a label 0.0 or 1.0, got {label!r:.40}")
  return _LABELS[label]


_READERS = {
  "new_aan_pairs.train.tsv": _read_aan,
  **{f"papers.jsonl{suffix}": _read_pairs for suffix in ("", ".xz", ".gz")},
}
