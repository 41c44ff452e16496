"""ListOps: the value of an expression, one of ten.

The benchmark's files have a header and, tab-separated, an expression in
parentheses and its value:

  Source                                                Target
  ( ( ( ( [MAX 2 ) 9 ) ( ( ( [MIN 4 ) 7 ) ] ) ) ] )     9

Parentheses carry no information and are dropped. Every other word is a token;
its id is its place in `listops_trees.WORDS`.
"""

import dataclasses
import pathlib

import numpy as np

from data_files import cache, disk
from data_files.errors import DataError
from lra_tasks import listops_trees, rows, task

FILES = {
  "train": "basic_train.tsv",
  "validation": "basic_val.tsv",
  "test": "basic_test.tsv",
}
HEADER = "Source\tTarget"
# Padding, the 15 words, and one id that stands for unknown words elsewhere.
VOCAB_SIZE = len(listops_trees.WORDS) + 1

_FOLDERS = (
  "",
  "listops-1000",
  "lra_release/listops-1000",
  "lra_release/lra_release/listops-1000",
)
_ADVICE = (
  "Unpack https://storage.googleapis.com/long-range-arena/lra_release.gz there,"
  " or leave data_dir out to generate expressions."
)
# Part of the name in the cache: change it when expressions are drawn
# differently.
_DRAWING = 1
# Each level of an expression takes a few steps to evaluate.
_DEEPEST = 1000
_ROWS_AT_ONCE = 200

_IDS = {
  word.encode(): index for index, word in enumerate(listops_trees.WORDS) if word
}
_LABELS = {str(digit).encode(): digit for digit in range(10)}
# Single bytes beyond ASCII that stand for the operators.
_SHORT = {word: bytes([128 + _IDS[word]]) for word in _IDS if len(word) > 1}
# The id of each byte, and how many levels it goes down the tree, or up.
_UNKNOWN = 255
_TABLE = bytearray([_UNKNOWN] * 256)
for _word, _id in _IDS.items():
  _TABLE[_SHORT.get(_word, _word)[0]] = _id
_STEP = np.zeros(256, np.int8)
_STEP[[_IDS[word] for word in _SHORT]] = 1
_STEP[listops_trees.CLOSE] = -1


def make_task(
  data_dir: pathlib.Path | None, *, max_length: int = 2000, **settings: int
) -> task.Task:
  """The task, from files or from expressions drawn for it.

  Args:
    data_dir: a folder with the benchmark's three files, or the one its archive
      was unpacked in. None draws expressions once and caches them.
    max_length: rows are cut or padded to this length. Drawn ones are shorter.
    **settings: how to draw, the other fields of `listops_trees.Settings`; an
      error with data_dir.
  """
  if data_dir is None:
    splits = _drawn(listops_trees.Settings(max_length=max_length, **settings))
  elif settings:
    raise ValueError(
      f"{', '.join(settings)}: settings to draw expressions, but {data_dir}"
      " has its own: leave out the settings or data_dir"
    )
  else:
    path, reader = disk.find(
      "listops", data_dir, _FOLDERS, {FILES["train"]: read}, _ADVICE
    )
    splits = {s: reader(path.with_name(name)) for s, name in FILES.items()}
  return task.Task(
    name="listops",
    vocab_size=VOCAB_SIZE,
    num_classes=len(_LABELS),
    max_length=max_length,
    is_pair=False,
    **{s: rows.TokenRows(*splits[s], max_length) for s in FILES},
  )


def read(path: pathlib.Path) -> listops_trees.Expressions:
  """The expressions of one of the benchmark's files."""
  lines = disk.lines(path)
  where, header = next(lines)
  if header != HEADER.encode():
    raise DataError(f"{where}: expected the header {HEADER!r}")
  expressions, labels = [], []
  for where, line in lines:
    columns = line.split(b"\t")
    if len(columns) != 2:
      raise DataError(
        f"{where}: expected 2 columns separated by a tab, got {len(columns)}"
      )
    source, label = columns
    if label not in _LABELS:
      raise DataError(f"{where}: expected a label 0..9, got {label!r:.40}")
    expressions.append(_tokens(where, source))
    labels.append(_LABELS[label])
  if not labels:
    raise DataError(f"{where}: no expression follows the header")
  tokens, offsets = rows.end_to_end(expressions)
  read = listops_trees.Expressions(tokens, offsets, np.array(labels, np.int32))
  _check_values(path, read)
  return read


def _check_values(path: pathlib.Path, read: listops_trees.Expressions) -> None:
  for start in range(0, len(read.labels), _ROWS_AT_ONCE):
    labels = read.labels[start : start + _ROWS_AT_ONCE]
    first, last = read.offsets[[start, start + len(labels)]]
    tokens = read.tokens[first:last]
    values = listops_trees.values(tokens, _depth(tokens))
    wrong = np.flatnonzero(values != labels)
    if wrong.size:
      row = wrong[0]
      raise DataError(
        f"{path}, line {start + row + 2}: the answer is {values[row]}, not"
        f" {labels[row]}"
      )


def _tokens(where: str, source: bytes) -> bytes:
  """The ids of a well-formed expression."""
  words = short = source.translate(None, b"()")
  for word, byte in _SHORT.items():
    short = short.replace(word, byte)
  tokens = short.translate(_TABLE, b" ")
  is_word = np.frombuffer(short, np.uint8) != ord(" ")
  run_together = (is_word[1:] & is_word[:-1]).any()
  if run_together or _UNKNOWN in tokens or not words.isascii():
    unknown = next(w for w in words.split(b" ") if w and w not in _IDS)
    raise DataError(f"{where}: unknown word {unknown!r:.40}")
  depth = _depth(np.frombuffer(tokens, np.uint8))
  # An operator closed right away is a step of 1, then one of -1.
  step = np.diff(depth, prepend=0)
  is_empty = (step[:-1] > step[1:] + 1).any()
  if not tokens or depth[-1] != 0 or (depth[:-1] < 1).any() or is_empty:
    raise DataError(
      f"{where}: expected one whole expression, got {source!r:.60}"
    )
  if depth.max() > _DEEPEST:
    raise DataError(f"{where}: more than {_DEEPEST} operators in each other")
  return tokens


def _depth(tokens: np.ndarray) -> np.ndarray:
  """How many operators are open after each token."""
  return np.cumsum(_STEP[tokens], dtype=np.int32)


def _drawn(
  settings: listops_trees.Settings,
) -> dict[str, listops_trees.Expressions]:
  """Expressions from the cache, drawn if they are missing."""

  def make(folder: pathlib.Path) -> None:
    for split, expressions in listops_trees.generate(settings).items():
      for field, array in expressions._asdict().items():
        np.save(folder / f"{split}_{field}.npy", array)

  numbers = "-".join(map(str, dataclasses.astuple(settings)))
  folder = cache.keep(f"listops-{_DRAWING}-{numbers}", make)
  return {
    split: listops_trees.Expressions(
      *(
        np.load(folder / f"{split}_{field}.npy", allow_pickle=False)
        for field in listops_trees.Expressions._fields
      )
    )
    for split in FILES
  }
