"""The table of results: what runs, what is skipped, what is printed."""

import json
import subprocess

from algorithmic import table

SPLITS = ("id", "od_easy", "od_hard")


def finish(folder, name, *accuracies):
  """Writes the results of a finished run."""
  splits = {
    split: {"sequence_accuracy": accuracy}
    for split, accuracy in zip(SPLITS, accuracies, strict=True)
  }
  (folder / name).mkdir()
  (folder / name / "results.json").write_text(json.dumps({"splits": splits}))


def test_unfinished_table_shows_what_is_there(tmp_path, capsys):
  finish(tmp_path, "palin-nam_tm-cpu-0", 1.0, 1.0, 0.99)
  finish(tmp_path, "palin-nam_tm-cpu-1", 1.0, 0.5, 0.98)
  finish(tmp_path, "copy-lstm-cpu-0", 0.25, 0.125, 0.0)
  arguments = ["--tasks=palin,copy", "--models=nam_tm,lstm", "--seeds=0,1,2"]
  folder = f"--folder={tmp_path}"
  assert table.main([folder, *arguments, "--show"]) == 0
  assert capsys.readouterr().out.splitlines() == [
    "model   palin                           copy",
    "nam_tm  100/75.0/98.5 x2 (100/100/100)  -",
    "lstm    - (100/100/100)                 25.0/12.5/0.0 x1",
  ]
  arguments = ["--tasks=copy", "--models=lstm", "--show", "--markdown"]
  table.main([folder, *arguments])
  assert capsys.readouterr().out.splitlines() == [
    "| model | copy          |",
    "| ----- | ------------- |",
    "| lstm  | 25.0/12.5/0.0 |",
  ]


def test_missing_cells_are_run_and_finished_ones_skipped(
  tmp_path, capsys, monkeypatch
):
  finish(tmp_path, "palin-dnc-cpu-0", 1.0, 1.0, 1.0)
  commands = []

  def fake_run(command, stdout, stderr):
    commands.append([str(word) for word in command])
    return subprocess.CompletedProcess(command, int("dyck" in str(command)))

  monkeypatch.setattr(subprocess, "run", fake_run)
  arguments = ["--tasks=palin,dyck", "--models=dnc,lsam", "--seeds=0"]
  more = ["--config.num_steps=3"]
  folder = f"--folder={tmp_path}"
  assert table.main([folder, *arguments, *more]) == 1
  configs = [command[2].rpartition("/")[2] for command in commands]
  assert configs == [
    "palin.py:lsam,cpu",
    "task.py:dyck,dnc,cpu",
    "task.py:dyck,lsam,cpu",
  ]
  assert commands[0][3:] == [
    "--config.seed=0",
    f"--workdir={tmp_path}/palin-lsam-cpu-0",
    *more,
  ]
  assert "dyck-dnc-cpu-0 ended with status 1" in capsys.readouterr().out
