"""The command: where the page goes, and what it rejects."""

import subprocess
import sys

import pytest

from report import __main__ as command
from tests import project_tree
from tests.report import folders


def refused(capsys, *arguments):
  """The one-line error with which the command ends."""
  with pytest.raises(SystemExit) as stop:
    command.main([str(argument) for argument in arguments])
  assert stop.value.code == 2
  (line,) = capsys.readouterr().err.splitlines()
  return line


def test_page_goes_into_the_folder_or_where_it_is_told(tmp_path, capsys):
  folders.lra(tmp_path / "run")
  command.main([str(tmp_path)])
  assert "report.html: 1 run, " in capsys.readouterr().out
  command.main([str(tmp_path), f"--output={tmp_path / 'other.html'}"])
  pages = [tmp_path / name for name in ("report.html", "other.html")]
  assert [p.read_text()[:15] for p in pages] == ["<!DOCTYPE html>"] * 2


def test_folder_without_runs_is_refused_in_one_line(tmp_path, capsys):
  assert "holds no run" in refused(capsys, tmp_path)
  assert "is not a folder" in refused(capsys, tmp_path / "absent")
  assert list(tmp_path.iterdir()) == []
  assert "required: folder" in refused(capsys)


def test_page_that_cannot_be_written_is_refused(tmp_path, capsys):
  folders.lra(tmp_path / "run")
  for place in (tmp_path / "run", tmp_path / "absent" / "page.html"):
    line = refused(capsys, tmp_path, f"--output={place}")
    assert f"cannot write {place}" in line
  assert {p.name for p in tmp_path.iterdir()} == {"run"}


def test_module_runs_and_helps():
  process = subprocess.run(
    [sys.executable, "-m", "report", "--help"],
    cwd=project_tree.ROOT,
    capture_output=True,
    text=True,
  )
  assert process.returncode == 0
  assert "--output" in process.stdout
  assert "python -m report runs" in process.stdout
