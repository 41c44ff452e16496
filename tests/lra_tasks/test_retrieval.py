"""Pairs of papers: the benchmark's columns, and pairs over a file of papers."""

import functools
import itertools
import lzma
import os
import pathlib

import numpy as np
import pytest

from lra_tasks import retrieval, text
from tests.data_files import writers

AAN_LINES = [
  b'1.0\tP05-1066\tJ93-2003\tA "quoted\xff text\tbb',
  b"0.0\tJ93-2003\tP05-1066\tbb\tb",
  b"0.0\tJ93-2003\tW01-0001\tbb\t" + b"c" * 12,
]
PAPERS = [{"id": 0, "text": "z\u00e9ro"}, {"id": "K7", "text": "seven"}]
HEADER = b"label\tciting\tcandidate"


def write_aan(folder, lines=AAN_LINES):
  for split in ("eval", "test", "train"):
    data = b"".join(line + b"\n" for line in lines)
    writers.write(folder / f"new_aan_pairs.{split}.tsv", data)


def write_pairs(folder, lines=(HEADER, b"1\t0\tK7", b"0\tK7\tK7")):
  writers.write(folder / "papers.jsonl", writers.json_lines(*PAPERS))
  for split in ("val", "test", "train"):
    writers.write(folder / f"pairs_{split}.tsv", b"\n".join(lines) + b"\n")


def decoded(row):
  return [text.decode(ids) for ids in row["inputs"]]


error_of = functools.partial(writers.error_of, retrieval.make_task)


def test_both_papers_are_bytes_plus_one_cut_to_the_length(tmp_path):
  write_aan(tmp_path)
  a_task = retrieval.make_task(tmp_path, max_length=5)
  assert a_task.is_pair
  assert (a_task.vocab_size, a_task.num_classes) == (257, 2)
  row = a_task.train[0]
  assert row["inputs"].tolist() == [
    [byte + 1 for byte in b'A "qu'],
    [99, 99, 0, 0, 0],
  ]
  assert row["mask"].sum(axis=1).tolist() == [5, 2]
  assert a_task.test[2]["inputs"][1].tolist() == [100] * 5


def test_labels_and_whole_lengths_are_kept(tmp_path):
  write_aan(tmp_path)
  a_task = retrieval.make_task(tmp_path, max_length=5)
  assert a_task.validation.labels.tolist() == [1, 0, 0]
  assert a_task.train.lengths.tolist() == [[15, 2], [2, 1], [2, 12]]
  assert retrieval.make_task(tmp_path).max_length == 4000


@pytest.mark.parametrize(
  "place",
  ["tsv_data", "lra_release/tsv_data", "lra_release/lra_release/tsv_data"],
)
def test_the_unpacked_archive_of_the_benchmark_is_found(tmp_path, place):
  write_aan(tmp_path / place)
  assert len(retrieval.make_task(tmp_path).test) == 3


def test_equal_papers_are_stored_once(tmp_path):
  write_aan(tmp_path, AAN_LINES * 50)
  documents = retrieval.make_task(tmp_path).train._documents
  assert documents.lengths.tolist() == [15, 2, 1, 12]


@pytest.mark.parametrize("place", ["", "citation"])
def test_pairs_over_a_file_of_papers_load(tmp_path, place):
  write_pairs(tmp_path / place)
  a_task = retrieval.make_task(tmp_path)
  assert decoded(a_task.train[0]) == ["z\u00e9ro", "seven"]
  assert decoded(a_task.validation[1]) == ["seven", "seven"]
  assert a_task.test.labels.tolist() == [1, 0]


def test_papers_may_be_packed(tmp_path):
  write_pairs(tmp_path)
  path = tmp_path / "papers.jsonl"
  writers.write(tmp_path / "papers.jsonl.xz", lzma.compress(path.read_bytes()))
  path.unlink()
  assert len(retrieval.make_task(tmp_path).train) == 2


def test_the_end_of_a_line_is_no_text(tmp_path):
  write_aan(tmp_path, [b"1.0\tA\tB\tfirst\tsecond\r"])
  assert decoded(retrieval.make_task(tmp_path).train[0]) == ["first", "second"]


@pytest.mark.parametrize(
  ("line", "complaint"),
  [
    (b"", "5 tab-separated columns"),
    (b"1.0\tA\tB\tfirst", "5 tab-separated columns"),
    (b"1.0\tA\tB\tfirst\tsecond\tthird", "5 tab-separated columns"),
    (b"label\tid1\tid2\ttext1\ttext2", "label 0.0 or 1.0, got b'label'"),
    (b"2.0\tA\tB\tfirst\tsecond", "label 0.0 or 1.0, got b'2.0'"),
    (b"nan\tA\tB\tfirst\tsecond", "label 0.0 or 1.0, got b'nan'"),
    (b"1.0\ta first text\tA\tB\tsecond", "ids in columns 2 and 3"),
    (b"1.0\tA\t\tfirst\tsecond", "ids in columns 2 and 3"),
  ],
)
def test_a_wrong_line_of_the_benchmark_is_named(tmp_path, line, complaint):
  write_aan(tmp_path)
  path = tmp_path / "new_aan_pairs.eval.tsv"
  path.write_bytes(path.read_bytes() + line + b"\n")
  message = error_of(tmp_path)
  assert f"{path}, line 4" in message
  assert complaint in message


def test_shuffled_columns_are_always_an_error(tmp_path):
  columns = [b"1.0", b"A1", b"B2", b"the first", b"the second"]
  # Ids among themselves, and texts among themselves, look alike.
  same = {
    (0, *ids, *texts) for ids in ((1, 2), (2, 1)) for texts in ((3, 4), (4, 3))
  }
  for order in set(itertools.permutations(range(5))) - same:
    write_aan(tmp_path, [b"\t".join(columns[i] for i in order)])
    assert "line 1" in error_of(tmp_path)


@pytest.mark.parametrize(
  ("lines", "where", "complaint"),
  [
    ([b"1\t0\tK7"], "line 1", "header label, citing, candidate"),
    ([b"citing\tcandidate\tlabel"], "line 1", "header label"),
    ([HEADER], "line 1", "pairs after the header"),
    ([HEADER, b"1\t0"], "line 2", "3 tab-separated columns"),
    ([HEADER, b"1\t0\t7"], "line 2", "papers.jsonl has no id b'7'"),
    ([HEADER, b"7\t0\tK7"], "line 2", "label 0.0 or 1.0, got b'7'"),
  ],
)
def test_a_wrong_line_of_pairs_is_named(tmp_path, lines, where, complaint):
  write_pairs(tmp_path, lines)
  message = error_of(tmp_path)
  assert f"{tmp_path / 'pairs_train.tsv'}, {where}" in message
  assert complaint in message


@pytest.mark.parametrize(
  "paper",
  [
    {"id": 0, "text": "again"},
    {"text": "a"},
    {"id": ["x"], "text": "a"},
    {"id": None, "text": "a"},
  ],
)
def test_every_paper_needs_an_id_of_its_own(tmp_path, paper):
  write_pairs(tmp_path)
  lines = writers.json_lines(*PAPERS, paper)
  path = writers.write(tmp_path / "papers.jsonl", lines)
  assert f"{path}, line 3: expected a unique id" in error_of(tmp_path)


def test_an_id_that_no_pair_can_name_is_read(tmp_path):
  write_pairs(tmp_path)
  lines = writers.json_lines(*PAPERS, {"id": "\ud800", "text": "a"})
  writers.write(tmp_path / "papers.jsonl", lines)
  retrieval.make_task(tmp_path)


def test_missing_and_empty_files_are_named(tmp_path):
  write_aan(tmp_path)
  path = tmp_path / "new_aan_pairs.test.tsv"
  path.write_bytes(b"")
  assert f"{path}: the file is empty" in error_of(tmp_path)
  path.unlink()
  assert f"{path}: no such file" in error_of(tmp_path)
  message = error_of(tmp_path / "citation")
  assert "storage.googleapis.com/long-range-arena/lra_release.gz" in message
  assert "new_aan_pairs.train.tsv" in message


@pytest.mark.parametrize("file", ["pairs_val.tsv", "papers.jsonl"])
def test_damaged_files_raise_nothing_but_data_errors(tmp_path, file):
  write_pairs(tmp_path)
  load = functools.partial(retrieval.make_task, tmp_path)
  tasks, failures = writers.load_damaged(tmp_path / file, 40, load)
  assert failures
  assert {len(a_task.train) for a_task in tasks} == {2}


@writers.REAL
def test_the_real_pairs_are_complete_and_balanced():
  a_task = retrieval.make_task(pathlib.Path(os.environ["NAM_DATA_DIR"]))
  splits = (a_task.train, a_task.validation, a_task.test)
  assert sum(map(len, splits)) == 51_138
  for rows in splits:
    assert abs(rows.labels.mean() - 0.5) < 0.01
    assert rows[0]["inputs"].shape == (2, 4000)
    assert np.median(rows.lengths) > 4000
