"""IMDB reviews from every format, and damaged ones."""

import functools
import gzip
import lzma
import os
import pathlib

import numpy as np
import pytest

from data_files import official
from lra_tasks import text
from tests.data_files import writers

TEXTS = [
  {"text": "A caf\u00e9.", "label": 1},
  {"text": "b" * 30, "label": 0},
  {"text": "C\nc", "label": 1},
]


def write_json_lines(folder, suffix="", packer=bytes):
  lines = writers.json_lines(*TEXTS).encode()
  writers.write(folder / f"imdb_train.jsonl{suffix}", packer(lines))
  lines = writers.json_lines(*TEXTS[:2]).encode()
  writers.write(folder / f"imdb_test.jsonl{suffix}", packer(lines))


# As in the benchmark: all training reviews are trained on.
all_reviews = functools.partial(text.make_task, validation="test")
error_of = functools.partial(writers.error_of, all_reviews)


def test_an_id_is_the_byte_plus_one_and_zero_pads(tmp_path):
  write_json_lines(tmp_path)
  a_task = all_reviews(tmp_path, max_length=10)
  row = a_task.train[0]
  ids = [byte + 1 for byte in "A caf\u00e9.".encode()]
  assert row["inputs"].tolist() == [*ids, 0, 0]
  assert row["mask"].sum() == 8
  assert row["label"] == 1
  assert a_task.train[1]["inputs"].tolist() == [99] * 10
  assert a_task.train.lengths.tolist() == [8, 30, 3]


def test_the_task_is_as_in_the_benchmark(tmp_path):
  write_json_lines(tmp_path)
  a_task = all_reviews(tmp_path)
  assert (a_task.name, a_task.vocab_size) == ("text", 257)
  assert (a_task.num_classes, a_task.max_length) == (2, 1000)
  assert not a_task.is_pair
  assert a_task.validation is a_task.test
  assert (len(a_task.train), len(a_task.test)) == (3, 2)


def write_reviews(folder, counts=(40, 25)):
  """Different reviews, so many of each label."""
  items = [
    {"text": f"review {label} {i}", "label": label}
    for label, count in enumerate(counts)
    for i in range(count)
  ]
  for split in ("train", "test"):
    lines = writers.json_lines(*items)
    writers.write(folder / f"imdb_{split}.jsonl", lines)
  return [item["text"] for item in items]


def decoded(rows):
  return [text.decode(row["inputs"]) for row in rows]


def test_a_tenth_of_each_class_is_held_out_of_training(tmp_path):
  texts = write_reviews(tmp_path)
  a_task = text.make_task(tmp_path)
  assert np.bincount(a_task.validation.labels).tolist() == [4, 2]
  assert np.bincount(a_task.train.labels).tolist() == [36, 23]
  train, held_out = decoded(a_task.train), decoded(a_task.validation)
  assert sorted(train + held_out) == sorted(texts)
  assert decoded(a_task.test) == texts
  for rows in (a_task.train, a_task.validation):
    assert [len(t) for t in decoded(rows)] == rows.lengths.tolist()
    assert [row["label"] for row in rows] == rows.labels.tolist()


def test_the_split_has_its_own_seed(tmp_path):
  write_reviews(tmp_path)
  first, same, other = (
    decoded(text.make_task(tmp_path, split_seed=seed).validation)
    for seed in (0, 0, 1)
  )
  assert first == same != other


def test_a_small_set_holds_out_one_review_per_class(tmp_path):
  write_reviews(tmp_path, (2, 3))
  a_task = text.make_task(tmp_path)
  assert a_task.validation.labels.tolist() == [0, 1]
  assert a_task.train.labels.tolist() == [0, 1, 1]
  write_reviews(tmp_path, (2, 1))
  message = writers.error_of(text.make_task, tmp_path)
  assert "imdb_train.jsonl: label 1 has 1 training review" in message


@pytest.mark.parametrize(
  ("settings", "message"),
  [
    ({"validation": "none"}, "validation='none' is not one of held_out, test"),
    ({"validation": "test", "split_seed": 1}, "split_seed=1 has no effect"),
  ],
)
def test_settings_that_make_no_split_are_refused(tmp_path, settings, message):
  with pytest.raises(ValueError, match=message):
    text.make_task(tmp_path, **settings)


def test_decoding_gives_the_text_back(tmp_path):
  write_json_lines(tmp_path)
  rows = all_reviews(tmp_path).train
  assert [text.decode(row["inputs"]) for row in rows] == [
    item["text"] for item in TEXTS
  ]


@pytest.mark.parametrize(
  ("place", "prefix"), [("", ""), ("imdb", "./"), ("imdb_reviews", "")]
)
def test_the_archive_is_read_in_the_order_of_its_names(tmp_path, place, prefix):
  contents = writers.imdb_contents()
  writers.write_archive(
    tmp_path / place / "aclImdb_v1.tar.gz",
    {prefix + name: data for name, data in contents.items()},
  )
  a_task = all_reviews(tmp_path)
  assert a_task.train.labels.tolist() == [0, 0, 1, 1]
  inputs = a_task.test[3]["inputs"]
  assert bytes((inputs[inputs > 0] - 1).tolist()) == b"test pos 1 caf\xe9"
  assert text.decode(inputs) == "test pos 1 caf\ufffd"


@pytest.mark.parametrize(
  ("suffix", "packer"), [(".xz", lzma.compress), (".gz", gzip.compress)]
)
def test_json_lines_may_be_packed(tmp_path, suffix, packer):
  write_json_lines(tmp_path / "imdb", suffix, packer)
  assert all_reviews(tmp_path).train.labels.tolist() == [1, 0, 1]


def test_prepared_folders_load_also_from_where_tfds_keeps_them(
  tmp_path, monkeypatch
):
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
  folder = writers.write_prepared(
    tmp_path,
    "imdb_reviews",
    {"text": None, "label": 2},
    {"train": TEXTS, "test": TEXTS[:1]},
  )
  for data_dir in (None, tmp_path, tmp_path / "imdb_reviews", folder):
    a_task = all_reviews(data_dir)
    assert a_task.train.labels.tolist() == [1, 0, 1]
    assert text.decode(a_task.train[2]["inputs"]) == "C\nc"
    assert len(a_task.test) == 1


def test_without_data_the_error_tells_what_to_do(tmp_path, monkeypatch):
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path / "tfds"))
  for data_dir, place in ((tmp_path, tmp_path), (None, tmp_path / "tfds")):
    message = error_of(data_dir)
    for part in (
      "aclImdb_v1.tar.gz",
      "imdb_train.jsonl.xz",
      str(place / "imdb_reviews"),
      "python -m data_files.prepare imdb_reviews",
      "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
    ):
      assert part in message


@pytest.mark.parametrize(
  ("line", "complaint"),
  [
    (b"", "JSON object"),
    (b'{"text": "a", "label": 1', "JSON object"),
    (b"[" * 100_000, "JSON object"),
    (b'["text", "label"]', "JSON object whose text is a string"),
    (b'{"text": "caf\xe9", "label": 1}', "UTF-8"),
    ('{"text": "a", "label": 1}'.encode("utf-16"), "UTF-8"),
    (b'{"text": "\\ud800", "label": 1}', "UTF-8"),
    (b'{"label": 1}', "whose text is a string, got {'label': 1}"),
    (b'{"text": 3, "label": 1}', "whose text is a string"),
    (b'{"text": "", "label": 1}', "the text is empty"),
    (b'{"text": "a", "label": 2}', r"label 0 or 1, got 2"),
    (b'{"text": "a", "label": true}', r"label 0 or 1, got True"),
    (b'{"text": "a", "label": "1"}', r"label 0 or 1, got '1'"),
    (b'{"text": "a"}', r"label 0 or 1, got None"),
  ],
)
def test_a_wrong_line_is_named(tmp_path, line, complaint):
  write_json_lines(tmp_path)
  path = tmp_path / "imdb_test.jsonl"
  path.write_bytes(path.read_bytes() + line + b"\n")
  message = error_of(tmp_path)
  assert f"{path}, line 3" in message
  assert complaint in message


def test_files_that_are_missing_or_empty_are_named(tmp_path):
  write_json_lines(tmp_path)
  path = tmp_path / "imdb_test.jsonl"
  path.write_bytes(b"")
  assert f"{path}: the file is empty" in error_of(tmp_path)
  path.unlink()
  assert f"{path}: no such file" in error_of(tmp_path)


@pytest.mark.parametrize("name", ["train/pos/0_9.txt", "test/neg/1_2.txt"])
def test_an_empty_review_is_an_error(tmp_path, name):
  contents = writers.imdb_contents() | {f"aclImdb/{name}": b""}
  writers.write_archive(tmp_path / "aclImdb_v1.tar.gz", contents)
  assert f"{name} is empty" in error_of(tmp_path)


def test_a_class_without_reviews_is_an_error(tmp_path):
  contents = writers.imdb_contents()
  contents = {k: v for k, v in contents.items() if "test/neg" not in k}
  writers.write_archive(tmp_path / "aclImdb_v1.tar.gz", contents)
  assert "test must have reviews in both neg" in error_of(tmp_path)


def test_an_archive_never_reaches_outside_of_itself(tmp_path):
  path = tmp_path / "data" / "aclImdb_v1.tar.gz"
  contents = {"../aclImdb/train/pos/5_9.txt": b"x", "/evil.txt": b"x"}
  path.parent.mkdir()
  writers.write_archive(path, contents | writers.imdb_contents())
  assert len(all_reviews(path.parent).train) == 4
  assert [p for p in tmp_path.rglob("*") if p.is_file()] == [path]


def test_a_truncated_archive_is_told_from_the_official_one(tmp_path):
  path = tmp_path / "aclImdb_v1.tar.gz"
  writers.write_archive(path, writers.imdb_contents())
  path.write_bytes(path.read_bytes()[:-9])
  message = error_of(tmp_path)
  assert f"{path}: the archive is damaged" in message
  assert official.IMDB.md5 in message
  assert f"download {official.IMDB.url} again" in message


def test_an_archive_packed_after_truncation_is_an_error(tmp_path):
  whole = writers.tar(writers.imdb_contents())
  for size in range(512, len(whole.rstrip(b"\0")) + 512, 1536):
    packed = gzip.compress(whole[:size], 1)
    writers.write(tmp_path / "aclImdb_v1.tar.gz", packed)
    assert "damaged" in error_of(tmp_path)


def test_a_damaged_archive_loads_right_or_not_at_all(tmp_path):
  path = tmp_path / "aclImdb_v1.tar.gz"
  writers.write_archive(path, writers.imdb_contents())
  whole = all_reviews(tmp_path).train[0]["inputs"]
  load = functools.partial(all_reviews, tmp_path)
  for a_task in writers.load_damaged(path, 40, load)[0]:
    np.testing.assert_array_equal(a_task.train[0]["inputs"], whole)
    assert (len(a_task.train), len(a_task.test)) == (4, 4)


@pytest.mark.parametrize("suffix", ["", ".xz", ".gz"])
def test_damaged_json_lines_raise_nothing_but_data_errors(tmp_path, suffix):
  packer = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress}[suffix]
  write_json_lines(tmp_path, suffix, packer)
  path = tmp_path / f"imdb_train.jsonl{suffix}"
  load = functools.partial(all_reviews, tmp_path)
  tasks, failures = writers.load_damaged(path, 40, load)
  assert failures
  assert {len(a_task.train) for a_task in tasks} <= (
    {3} if suffix else {1, 2, 3, 4}
  )


@writers.REAL
def test_the_real_reviews_are_complete_and_balanced():
  a_task = text.make_task(pathlib.Path(os.environ["NAM_DATA_DIR"]))
  for rows, count in (
    (a_task.train, 11_250),
    (a_task.validation, 1250),
    (a_task.test, 12_500),
  ):
    assert np.bincount(rows.labels).tolist() == [count, count]
    assert 0.4 < (rows.lengths > 1000).mean() < 0.55
