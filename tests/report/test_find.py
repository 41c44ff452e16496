"""Folders are read, whatever is in them."""

import json

import pytest

from report import __main__ as command
from report import find
from tests.report import folders


@pytest.mark.parametrize(
  ("file", "content", "complaint"),
  [
    ("results.json", b"{", "not valid JSON"),
    ("results.json", b"\xff\xfe", "not valid JSON"),
    ("results.json", b"[" * 100_000, "not valid JSON"),
    ("results.json", b"[1]", "holds no JSON object"),
    ("results.json", b"{}", "not the results of a known kind"),
    ("results.json", b'{"accuracy": 1}', "not the results of a known kind"),
    ("config.json", b"no", "not valid JSON"),
    ("metrics.jsonl", b"\xff\xfe\n", "cannot be read"),
    ("metrics.jsonl", b"a\nb\nc\n", "3 of 3 lines hold no metrics"),
    ("metrics.jsonl", b'{"step": "x", "kind": 1}\n', "1 of 1 lines"),
    ("metrics.jsonl", b"[1]\n", "1 of 1 lines"),
    ("picture.png", b"GIF89a", "not a PNG"),
  ],
)
def test_unusable_file_is_named_and_the_rest_is_shown(
  tmp_path, capsys, file, content, complaint
):
  folders.algorithmic(tmp_path / "good", 1.0, 1.0, 1.0)
  folders.algorithmic(tmp_path / "bad", 1.0, 1.0, 1.0)
  (tmp_path / "bad" / file).write_bytes(content)
  command.main([str(tmp_path)])
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith(f"warning: bad/{file}: ")
  assert complaint in line
  text = (tmp_path / "report.html").read_text()
  assert line.removeprefix("warning: ").split("(")[0] in text
  assert ">good<" in text


@pytest.mark.parametrize(
  "change",
  [
    {"splits": None},
    {"splits": {"id": 1}},
    {"seed": "x"},
    {"parameters": float("inf")},
    {"wall_seconds": 10**400},
    {"wall_seconds": []},
  ],
)
def test_results_of_a_wrong_type_are_named(tmp_path, change):
  folders.algorithmic(tmp_path / "run", 1.0, 1.0, 1.0)
  file = tmp_path / "run" / "results.json"
  file.write_text(json.dumps(json.loads(file.read_text()) | change))
  runs, problems = find.find(tmp_path)
  assert [run.facts for run in runs] == [None]
  assert len(problems) == 1


def test_metrics_that_are_not_finite_leave_a_gap(tmp_path):
  folders.algorithmic(tmp_path / "run", finished=False)
  with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
    file.write('{"step": 30, "kind": "train", "loss": null}\n')
    file.write('{"step": 30, "kind": "train", "loss": NaN}\n{"step": 4')
  (run,), problems = find.find(tmp_path)
  assert problems == []
  assert run.curves[""].last("loss") == 1.0
  assert run.curves[""].steps() == "30 of 20"


def test_run_that_has_just_started_is_shown(tmp_path):
  folders.algorithmic(tmp_path / "run", finished=False)
  (tmp_path / "run" / "metrics.jsonl").write_text("")
  (run,), problems = find.find(tmp_path)
  assert problems == []
  assert run.curves[""].steps() == "0 of 20"
  command.main([str(tmp_path)])
  assert "0 of 20" in (tmp_path / "report.html").read_text()


def test_stages_belong_to_the_run_above_them(tmp_path):
  folders.fewshot(tmp_path / "images")
  (run,), problems = find.find(tmp_path)
  assert problems == []
  assert list(run.curves) == ["nam-1shot", "stage1"]
  (stage,), _ = find.find(tmp_path / "images" / "stage1")
  assert list(stage.curves) == [""]


def test_runs_of_other_scripts_show_their_curves(tmp_path):
  folders.metrics(tmp_path / "mine", "loss", 0.5)
  (run,), problems = find.find(tmp_path)
  assert problems == []
  assert run.kind.title == "Other runs"


def test_links_to_folders_are_not_followed(tmp_path):
  folders.algorithmic(tmp_path / "run", 1.0, 1.0, 1.0)
  (tmp_path / "run" / "again").symlink_to(tmp_path)
  assert [run.name for run in find.find(tmp_path).runs] == ["run"]
