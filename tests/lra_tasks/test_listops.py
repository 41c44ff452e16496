"""ListOps from files, from the cache, and what is wrong with files."""

import itertools
import lzma
import os
import pathlib

import numpy as np
import pytest

from data_files import errors
from lra_tasks import listops, listops_generator, listops_trees
from tests.data_files import writers
from tests.lra_tasks import listops_text

SHORT = {"min_length": 3, "num_train": 40, "num_validation": 5, "num_test": 6}
SPLITS = ("train", "validation", "test")


@pytest.fixture(autouse=True)
def cache_home(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  return tmp_path / "cache" / "nam-jax"


@pytest.fixture
def data_dir(tmp_path):
  settings = listops_trees.Settings(max_length=30, **SHORT)
  listops_generator.write(tmp_path, listops_trees.generate(settings))
  return tmp_path


def words_of(row):
  return [listops_trees.WORDS[i] for i in row["inputs"][row["mask"]]]


def assert_same_rows(a, b):
  for split in SPLITS:
    left, right = getattr(a, split), getattr(b, split)
    for x, y in zip(list(left), list(right), strict=True):
      for name in ("inputs", "mask", "label"):
        np.testing.assert_array_equal(x[name], y[name])


def test_drawn_and_written_expressions_are_read_back(data_dir):
  drawn = listops.make_task(None, max_length=30, **SHORT)
  assert_same_rows(drawn, listops.make_task(data_dir, max_length=30))
  assert [len(getattr(drawn, split)) for split in SPLITS] == [40, 5, 6]


def test_the_task_has_the_sizes_of_the_benchmark(data_dir):
  made = listops.make_task(data_dir)
  sizes = (made.name, made.vocab_size, made.num_classes, made.max_length)
  assert sizes == ("listops", 17, 10, 2000)
  assert not made.is_pair
  assert made.train[0]["inputs"].shape == (2000,)


def test_rows_are_the_words_without_parentheses(data_dir):
  lines = (data_dir / "basic_val.tsv").read_text().splitlines()[1:]
  made = listops.make_task(data_dir, max_length=30)
  for row, line in zip(list(made.validation), lines, strict=True):
    source, target = line.split("\t")
    assert words_of(row) == listops_text.words(source)
    assert row["label"] == int(target) == listops_text.value(source)


def test_ids_never_change():
  vocabulary = "0 1 2 3 4 5 6 7 8 9 [MIN [MAX [MED [SM ]"
  assert " ".join(listops_trees.WORDS[1:]) == vocabulary


def test_long_rows_are_cut(data_dir):
  row = listops.make_task(data_dir, max_length=4).train[0]
  assert row["mask"].all()
  full = words_of(listops.make_task(data_dir, max_length=30).train[0])
  assert words_of(row) == full[:4] != full


@pytest.mark.parametrize(
  "folder",
  [
    "listops-1000",
    "lra_release/listops-1000",
    "lra_release/lra_release/listops-1000",
  ],
)
def test_files_are_found_where_the_archive_has_them(data_dir, folder):
  expected = listops.make_task(data_dir)
  target = data_dir / "unpacked" / folder
  target.mkdir(parents=True)
  for name in listops.FILES.values():
    (data_dir / name).rename(target / name)
  assert_same_rows(expected, listops.make_task(data_dir / "unpacked"))


def test_line_ends_of_both_kinds_are_read(data_dir):
  expected = listops.make_task(data_dir)
  for name in listops.FILES.values():
    text = (data_dir / name).read_bytes()
    assert b"\r\n" in text
    (data_dir / name).write_bytes(text.replace(b"\r\n", b"\n").rstrip())
  assert_same_rows(expected, listops.make_task(data_dir))


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("", "basic_test.tsv: the file is empty"),
    ("Source\tTarget\n", "line 1: no expression"),
    ("( ( [MAX 1 ) ] )\t1\n", "line 1: expected the header"),
    ("Source\tTarget\n1\t1\n( ( [MAX 1 ) ] )\n", "line 3: expected 2 columns"),
    ("Source\tTarget\n1\t1\n\n", "line 3: expected 2 columns"),
    ("Source\tTarget\n1\t1\t1\n", "line 2: expected 2 columns"),
    ("Source\tTarget\n1\t10\n", "line 2: expected a label 0..9, got b'10'"),
    ("Source\tTarget\n1\t\n", "line 2: expected a label"),
    ("Source\tTarget\n[MAX 1 2\t2\n", "line 2: expected one whole"),
    ("Source\tTarget\n[MAX 1 2 ] ]\t2\n", "line 2: expected one whole"),
    ("Source\tTarget\n1 2\t2\n", "line 2: expected one whole"),
    ("Source\tTarget\n] [MAX 1\t1\n", "line 2: expected one whole"),
    ("Source\tTarget\n[MAX 1 [MIN ] ]\t1\n", "line 2: expected one whole"),
    ("Source\tTarget\n( )\t1\n", "line 2: expected one whole"),
    ("Source\tTarget\n[FIRST 1 2 ]\t1\n", r"unknown word b'\[FIRST'"),
    ("Source\tTarget\n[MAX 1 12 ]\t2\n", "unknown word b'12'"),
    ("Source\tTarget\n[MAX1 2 ]\t2\n", r"unknown word b'\[MAX1'"),
    ("Source\tTarget\n[MAX 1\x0b2 ]\t2\n", "unknown word"),
    ("Source\tTarget\n[MAX 1 2 X\t2\n", "unknown word b'X'"),
    (b"Source\tTarget\n[MAX 1 \xff ]\t2\n", "unknown word"),
    (b"Source\tTarget\n\x8b 1 2 ]\t2\n", "unknown word"),
  ],
)
def test_malformed_files_are_named_with_the_line(data_dir, text, message):
  text = text if isinstance(text, bytes) else text.encode()
  (data_dir / "basic_test.tsv").write_bytes(text)
  with pytest.raises(errors.DataError, match=message) as caught:
    listops.make_task(data_dir)
  assert str(data_dir / "basic_test.tsv") in str(caught.value)


@pytest.mark.parametrize("split", SPLITS)
def test_a_wrong_answer_is_named_with_the_line(data_dir, split):
  path = data_dir / listops.FILES[split]
  lines = path.read_text().splitlines()
  source, target = lines[3].split("\t")
  lines[3] = f"{source}\t{(int(target) + 1) % 10}"
  path.write_text("\n".join(lines))
  with pytest.raises(errors.DataError) as caught:
    listops.make_task(data_dir)
  assert str(caught.value) == (
    f"{path}, line 4: the answer is {target}, not {(int(target) + 1) % 10}"
  )


def test_values_are_those_of_the_expressions(monkeypatch):
  monkeypatch.setattr(listops, "_ROWS_AT_ONCE", 7)
  settings = listops_trees.Settings(max_length=60, **SHORT | {"min_length": 0})
  drawn = listops_trees.generate(settings)["train"]
  found = listops_trees.values(drawn.tokens, listops._depth(drawn.tokens))
  texts = map(listops_generator.text, drawn.rows())
  expected = [listops_text.value(text) for text in texts]
  assert found.tolist() == expected == drawn.labels.tolist()


def test_expressions_may_be_deep_but_not_too_deep(tmp_path):
  path = tmp_path / "deep.tsv"
  for depth in (1000, 1001):
    source = "[MAX " * depth + "3 4" + " ]" * depth
    path.write_text(f"Source\tTarget\n{source}\t4\n")
    if depth == 1000:
      assert listops.read(path).labels.tolist() == [4]
  with pytest.raises(
    errors.DataError, match="line 2: more than 1000 operators"
  ):
    listops.read(path)


def test_missing_files_are_named(data_dir, tmp_path):
  (data_dir / "basic_val.tsv").unlink()
  with pytest.raises(errors.DataError, match=r"basic_val\.tsv: no such file"):
    listops.make_task(data_dir)
  with pytest.raises(errors.DataError, match=r"lra_release\.gz"):
    listops.make_task(tmp_path / "elsewhere")


def test_settings_for_drawing_do_not_go_with_files(data_dir):
  with pytest.raises(ValueError, match="seed, min_length: settings to draw"):
    listops.make_task(data_dir, seed=0, min_length=500)
  with pytest.raises(TypeError, match="minlength"):
    listops.make_task(None, minlength=3)


def test_expressions_are_drawn_once_and_again_if_damaged(
  cache_home, monkeypatch, caplog
):
  expected = listops.make_task(None, max_length=30, **SHORT)
  other = listops.make_task(None, max_length=30, **SHORT | {"seed": 1})
  assert words_of(other.train[0]) != words_of(expected.train[0])
  (folder,) = cache_home.glob("*-0")
  tokens = folder / "train_tokens.npy"
  tokens.write_bytes(tokens.read_bytes()[:-1])
  assert_same_rows(expected, listops.make_task(None, max_length=30, **SHORT))
  assert "damaged" in caplog.text
  monkeypatch.setattr(listops_trees, "generate", None)
  assert_same_rows(expected, listops.make_task(None, max_length=30, **SHORT))


@writers.REAL
def test_expressions_of_the_original_data_set_are_read(tmp_path):
  folder = pathlib.Path(os.environ["NAM_DATA_DIR"], "listops_original")
  with lzma.open(folder / "test_d20s.tsv.xz", "rt") as file:
    lines = [line.rstrip().split("\t") for line in itertools.islice(file, 500)]
  rows = [f"{source}\t{label}\n" for label, source in lines]
  path = tmp_path / "original.tsv"
  path.write_text("Source\tTarget\n" + "".join(rows))
  read = listops.read(path)
  for (label, source), tokens in zip(lines, read.rows(), strict=True):
    words = [listops_trees.WORDS[token] for token in tokens]
    assert words == listops_text.words(source)
    assert listops_generator.text(tokens) == source
    assert listops_text.value(source) == int(label)
