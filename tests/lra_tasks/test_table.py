"""Tables of the Long Range Arena: what runs and what is printed."""

import json
import subprocess

from lra_tasks import table


def finish(folder, name, accuracy, step):
  """Writes the results of a finished run."""
  (folder / name).mkdir()
  results = {
    "accuracy": accuracy,
    "last": {"step": step},
    "wall_seconds": 90.0,
  }
  (folder / name / "results.json").write_text(json.dumps(results))


def test_finished_cells_stand_next_to_the_papers(tmp_path, capsys):
  finish(tmp_path, "listops-nam-cpu-0", 0.25, 1000)
  options = ["--tasks=listops,text", "--attentions=nam,nam_erase", "--show"]
  assert table.main([f"--folder={tmp_path}", *options]) == 0
  assert capsys.readouterr().out.splitlines() == [
    "attention  listops                                  text",
    "nam        25.00, 1,000 steps, 2 min (36.1, 2.66x)  - (63.5, 2.44x)",
    "nam_erase  -                                        -",
  ]


def test_missing_cells_are_run_with_the_data_they_need(
  tmp_path, capsys, monkeypatch
):
  commands = []

  def fake_run(command, stdout, stderr):
    commands.append([str(word) for word in command[2:]])
    return subprocess.CompletedProcess(command, int("text" in str(command)))

  monkeypatch.setattr(subprocess, "run", fake_run)
  finish(tmp_path, "image-linear-cpu-3", 0.3, 10)
  options = ["--seed=3", "--attentions=linear", "--config.batch_size=2"]
  data = "--data_dir=data"
  assert table.main([f"--folder={tmp_path}", data, *options]) == 1
  for name, words in zip(("listops", "text"), commands, strict=True):
    assert words[0].endswith(f"configs/lra/{name}.py:linear,cpu")
    assert words[1:] == [
      "--config.seed=3",
      f"--workdir={tmp_path}/{name}-linear-cpu-3",
      "--config.batch_size=2",
      *([data] if name == "text" else []),
    ]
  assert "text-linear-cpu-3 ended with status 1" in capsys.readouterr().out
