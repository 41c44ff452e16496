"""Folders are read, whatever is in them."""

import json
import os

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
    ("results.json", b'{"a":' + b"[" * 200 + b"]" * 200 + b"}", "can be shown"),
    ("metrics.jsonl", b"\xff\xfe\n", "1 of 1 lines hold no metrics"),
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


KINDS = {
  "folder": lambda path: path.mkdir(),
  "pipe": os.mkfifo,
  "dangling link": lambda path: path.symlink_to("nowhere"),
  "link to itself": lambda path: path.symlink_to(path.name),
  "device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_named_and_the_rest_is_shown(tmp_path, kind, capsys):
  folders.algorithmic(tmp_path / "good", 1.0, 1.0, 1.0)
  names = ("results.json", "config.json", "metrics.jsonl", "a.png")
  for name in names:
    folders.algorithmic(tmp_path / name[0], 1.0, 1.0, 1.0)
    (tmp_path / name[0] / name).unlink(missing_ok=True)
    KINDS[kind](tmp_path / name[0] / name)
  command.main([str(tmp_path)])
  lines = capsys.readouterr().err.splitlines()
  assert sorted(line.split(":")[1] for line in lines) == sorted(
    f" {name[0]}/{name}" for name in names
  )
  assert ">good<" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize(
  "name", ["$\\foo$", "\ud800", "\0", "a\nb", "\u4e2d", "_x", "$", ""]
)
def test_a_metric_may_have_any_name(tmp_path, capsys, name):
  folders.algorithmic(tmp_path / "run", finished=False, selection_metric=name)
  folders.metrics(tmp_path / "run", name, 0.25, 0.75)
  command.main([str(tmp_path)])
  assert capsys.readouterr().err == ""
  text = (tmp_path / "report.html").read_text()
  assert text.count("<figure>") == 2


def test_extreme_numbers_are_drawn(tmp_path):
  folders.algorithmic(tmp_path / "run", 1e308, -1e308, float("nan"))
  rows = [
    {"step": step, "kind": kind, "loss": value}
    for kind in ("train", "eval")
    for step, value in ((10**299, 1e299), (2, 5e-324), (-3, 1.0), (0.5, 10**30))
  ]
  text = "".join(json.dumps(row) + "\n" for row in rows)
  (tmp_path / "run" / "metrics.jsonl").write_text(text)
  command.main([str(tmp_path)])


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
