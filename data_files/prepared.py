"""Folders that tensorflow_datasets prepared, such as imdb_reviews/plain_text.

A split is a few files of examples, in one of two formats:

  imdb_reviews-train.tfrecord-00000-of-00001      the default
  imdb_reviews-train.array_record-00000-of-00001  needs the package array_record

and dataset_info.json tells how many examples each file has.
"""

import json
import pathlib
import re
import reprlib
from collections.abc import Iterator

from data_files import disk, errors, tfrecord


def examples(
  folder: pathlib.Path, name: str, split: str
) -> Iterator[tuple[str, tfrecord.Example]]:
  """Yields "file, record n" and the example, through a whole split."""
  shards = _shards(folder, name, split)
  lengths = _lengths(folder, split, len(shards))
  for path, length in zip(shards, lengths, strict=True):
    is_array_record = ".array_record-" in path.name
    records = (_array_records if is_array_record else tfrecord.records)(path)
    if length not in (None, len(records)):
      raise disk.damaged(
        path, f"has {len(records)} records, dataset_info.json says {length}"
      )
    for number, record in enumerate(records):
      where = f"{path}, record {number}"
      try:
        example = tfrecord.parse(record)
      except ValueError as error:
        raise errors.DataError(f"{where}: not an Example: {error}") from error
      yield where, example


def content(where: str, example: tfrecord.Example, name: str) -> bytes:
  """The bytes of a feature, such as a text or a PNG image."""
  match example.get(name):
    case [bytes(value)] if value:
      return value
    case other:
      raise errors.DataError(
        f"{where}: expected bytes as the feature {name},"
        f" got {reprlib.repr(other)}"
      )


def label(
  where: str, example: tfrecord.Example, num_classes: int, name: str = "label"
) -> int:
  """The feature of this name, a class."""
  values = example.get(name, [])
  value = values[0] if len(values) == 1 else values
  return disk.checked_label(where, value, num_classes)


def _shards(folder: pathlib.Path, name: str, split: str) -> list[pathlib.Path]:
  """The files of a split in order, all of one format and none missing."""
  pattern = re.compile(
    rf"{name}-{split}\.(array_record|tfrecord)-(\d+)-of-(\d+)"
  )
  found = sorted(p for p in folder.iterdir() if pattern.fullmatch(p.name))
  if not found:
    raise errors.DataError(
      f"{folder}: no {name}-{split}.tfrecord-00000-of-... (or .array_record-)"
    )
  kind, _, total = pattern.fullmatch(found[0].name).groups()
  shards = [
    folder / f"{name}-{split}.{kind}-{number:05}-of-{total}"
    for number in range(int(total))
  ]
  for path in shards:
    if path not in found:
      raise errors.DataError(f"{path}: no such file, but {found[0].name}")
  return shards


def _lengths(
  folder: pathlib.Path, split: str, shards: int
) -> list[int] | list[None]:
  """How many examples each file should have; None without dataset_info.json."""
  path = folder / "dataset_info.json"
  if not path.exists():
    return [None] * shards
  try:
    splits = {s["name"]: s for s in json.loads(disk.read(path))["splits"]}
    lengths = [int(length) for length in splits[split]["shardLengths"]]
  except (ValueError, KeyError, TypeError, RecursionError) as error:
    raise disk.damaged(path, f"no shardLengths of {split}") from error
  if len(lengths) != shards:
    raise disk.damaged(
      path, f"says {len(lengths)} files of {split}, there are {shards}"
    )
  return lengths


def _array_records(path: pathlib.Path) -> list[bytes]:
  try:
    from array_record.python import array_record_module
  except ImportError as error:
    raise errors.DataError(f"{path}: needs the package array_record") from error
  try:
    reader = array_record_module.ArrayRecordReader(str(path))
    records = reader.read_all()
    reader.close()
  except (RuntimeError, ValueError, IndexError) as error:
    raise disk.damaged(path, error) from error
  return records
