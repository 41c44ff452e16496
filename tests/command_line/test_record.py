"""Files of tables like docs/results.json."""

import argparse
import json

import pytest

from command_line import record


def test_a_table_goes_to_a_new_file_and_to_an_old_one(tmp_path):
  file = record.table_file(str(tmp_path / "tables.json"))
  assert record.read_table(file, "first") is None
  for name in ("first", "second"):
    record.write_table(file, name, {"columns": ["x"], "rows": [{"x": name}]})
  assert record.table_file(str(file)) == file
  assert [*json.loads(file.read_text())] == ["first", "second"]
  assert record.read_table(file, "second")["rows"] == [{"x": "second"}]


def test_a_writer_that_is_stopped_leaves_the_file_as_it_was(
  tmp_path, monkeypatch
):
  file = tmp_path / "tables.json"
  record.write_table(file, "first", {"columns": ["x"], "rows": []})
  before = file.read_text()

  def write_half(path, text, encoding):
    path.write_bytes(text[: len(text) // 2].encode(encoding))
    raise OSError("no space left on device")

  monkeypatch.setattr(type(file), "write_text", write_half)
  with pytest.raises(OSError, match="no space left"):
    record.write_table(file, "second", {"columns": ["x"], "rows": []})
  assert file.read_text() == before
  assert [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("content", ["", "[1]", "{", "\udcff"])
def test_what_is_no_file_of_tables_is_refused_at_once(tmp_path, content):
  file = tmp_path / "tables.json"
  file.write_bytes(content.encode(errors="surrogateescape"))
  with pytest.raises(argparse.ArgumentTypeError, match="not a file of tables"):
    record.table_file(str(file))


def test_folder_and_missing_folder_are_named(tmp_path):
  with pytest.raises(argparse.ArgumentTypeError, match="not a file of tables"):
    record.table_file(str(tmp_path))
  with pytest.raises(argparse.ArgumentTypeError, match="no such folder"):
    record.table_file(str(tmp_path / "missing" / "tables.json"))
