"""Prepared folders: files, their lengths, records and examples are checked."""

import builtins
import json

import numpy as np
import pytest
from tests.files import writers

from data_files import disk, errors, images, prepared, tfrecord

RECORDS = [writers.example(text=b"t" * n, label=n % 2) for n in (3, 200, 9000)]
KINDS = ["tfrecord", "array_record"]


def write(folder, kind="tfrecord", shards=(RECORDS[:2], RECORDS[2:])):
  writers.write_prepared(folder, "tiny", {"train": list(shards)}, kind)
  return folder / f"tiny-train.{kind}-00000-of-{len(shards):05}"


def examples(folder):
  return list(prepared.examples(folder, "tiny", "train"))


def error_of(folder):
  with pytest.raises(errors.DataError) as caught:
    examples(folder)
  return str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_examples_come_in_the_order_of_the_files(tmp_path, kind):
  first = write(tmp_path, kind)
  found = examples(tmp_path)
  assert [len(example["text"][0]) for _, example in found] == [3, 200, 9000]
  assert [example["label"] for _, example in found] == [[1], [0], [0]]
  assert found[1][0] == f"{first}, record 1"


def test_checksums_are_those_of_the_standard():
  # The check value of CRC-32C, rotated by 15 bits and with 0xA282EAD8 added.
  crc = 0xE3069283
  masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) % (1 << 32)
  assert tfrecord.masked_crc32c(b"123456789") == masked
  rng = np.random.default_rng(0)
  for size in (4, 5, 4095, 4096, 4097, 8193):
    record = rng.bytes(size)
    checksum = int.from_bytes(writers.tfrecord([record])[-4:], "little")
    assert tfrecord.masked_crc32c(record) == checksum


def test_values_may_be_packed_or_not_and_other_kinds_are_left_out():
  packed = b"\x0a\x0f\x0a\x0d\x0a\x01a\x12\x08\x1a\x06\x0a\x04\x05\xac\x02\x07"
  assert tfrecord.parse(packed) == {"a": [5, 300, 7]}
  single = b"\x0a\x0e\x0a\x0c\x0a\x01a\x12\x07\x1a\x05\x08\x05\x08\xac\x02"
  assert tfrecord.parse(single) == {"a": [5, 300]}
  floats = b"\x0a\x0f\x0a\x0d\x0a\x01a\x12\x08\x12\x06\x0a\x04\0\0\x80\x3f"
  assert tfrecord.parse(floats) == {"a": []}


@pytest.mark.parametrize(
  "record",
  [b"\x0a", b"\x0a\x05ab", b"\x08\x01", b"\x0d\0\0\0\0", b"\xff" * 11, b"text"],
)
def test_a_record_that_is_no_example_is_named(tmp_path, record):
  record = record.ljust(4, b"\xff")
  path = write(tmp_path, shards=[[RECORDS[0], record]])
  assert f"{path}, record 1: not an Example" in error_of(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_records_must_be_as_announced(tmp_path, kind):
  path = write(tmp_path, kind, [RECORDS])
  info = {"splits": [{"name": "train", "shardLengths": ["4"]}]}
  (tmp_path / "dataset_info.json").write_text(json.dumps(info))
  message = error_of(tmp_path)
  assert f"{path}: has 3 records, dataset_info.json says 4" in message
  (tmp_path / "dataset_info.json").unlink()
  assert len(examples(tmp_path)) == 3


@pytest.mark.parametrize(
  "info",
  [
    "",
    "{",
    "[]",
    '{"splits": 3}',
    '{"splits": [{"name": "test"}]}',
    "[" * 99999,
  ],
)
def test_a_wrong_dataset_info_is_named(tmp_path, info):
  write(tmp_path)
  (tmp_path / "dataset_info.json").write_text(info)
  assert str(tmp_path / "dataset_info.json") in error_of(tmp_path)


def test_a_missing_file_is_named(tmp_path):
  first = write(tmp_path)
  second = tmp_path / first.name.replace("00000", "00001")
  second.unlink()
  assert f"{second}: no such file" in error_of(tmp_path)
  first.unlink()
  assert "no tiny-train.tfrecord-00000" in error_of(tmp_path)


def test_more_files_than_announced_are_an_error(tmp_path):
  write(tmp_path)
  info = {"splits": [{"name": "train", "shardLengths": ["2"]}]}
  (tmp_path / "dataset_info.json").write_text(json.dumps(info))
  assert "says 1 files of train, there are 2" in error_of(tmp_path)


@pytest.mark.parametrize(
  ("position", "complaint"),
  [
    (0, "record 0: wrong checksum of its length"),
    (20, "record 0: wrong checksum of its data"),
    (-2, "record 2: wrong checksum of its data"),
  ],
)
def test_wrong_checksums_are_named(tmp_path, position, complaint):
  path = write(tmp_path, shards=[RECORDS])
  data = bytearray(path.read_bytes())
  data[position] ^= 64
  path.write_bytes(data)
  assert f"{path}: {complaint}" in error_of(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_records_load_right_or_not_at_all(tmp_path, kind):
  path = write(tmp_path, kind, [RECORDS[:2]])
  whole = examples(tmp_path)
  failures = 0
  for data in writers.damaged_copies(path.read_bytes(), 40):
    path.write_bytes(data)
    try:
      assert examples(tmp_path) == whole
    except errors.DataError:
      failures += 1
  assert failures >= 20


def test_features_of_another_kind_are_errors():
  for example in ({}, {"text": []}, {"text": [3]}, {"text": [b"a", b"b"]}):
    with pytest.raises(errors.DataError, match="here: expected bytes"):
      prepared.content("here", example, "text")
  for label in ([], [10], [b"1"], [1, 1], [(1 << 64) - 1]):
    with pytest.raises(
      errors.DataError, match=r"here: expected a label 0\.\.9"
    ):
      prepared.label("here", {"label": label}, 10)


@pytest.mark.parametrize(
  ("package", "named"), [("PIL", "pillow"), ("array_record", "array_record")]
)
def test_a_package_that_is_missing_is_named(
  tmp_path, monkeypatch, package, named
):
  write(tmp_path, "array_record")
  use = {
    "PIL": lambda: images.png("here", b""),
    "array_record": lambda: examples(tmp_path),
  }
  real_import = builtins.__import__

  def without(name, *rest):
    if name.split(".")[0] == package:
      raise ImportError(name)
    return real_import(name, *rest)

  monkeypatch.setattr(builtins, "__import__", without)
  with pytest.raises(errors.DataError, match=f"needs the package {named}"):
    use[package]()


def test_an_unreadable_file_is_an_error(tmp_path):
  with pytest.raises(errors.DataError, match="nothing: No such file"):
    disk.read(tmp_path / "nothing")
