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
