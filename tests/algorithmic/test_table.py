"""The tables of results: what runs, what is skipped, what is printed."""

import json
import subprocess
import time

import pytest

from algorithmic import data, paper, published, suites, table
from algorithmic.config import NAMES
from command_line import record
from configs.algorithmic import chomsky
from docs import tables as docs_tables

SPLITS = ("id", "od_easy", "od_hard")
MADE = {
  "epochs": 4.0,
  "wall_seconds": 126.0,
  "machine": {"device": "cpu", "cores": 1},
  "versions": {"jax": "0.10.2"},
}


def finish(folder, name, *accuracies):
  """Writes the results of a finished run."""
  splits = {
    split: {"sequence_accuracy": accuracy}
    for split, accuracy in zip(SPLITS, accuracies, strict=True)
  }
  write(folder, name, {"splits": splits})


def finish_protocol(folder, name, protocol, accuracy):
  """The same for another protocol: accuracy(length) of tokens."""
  by_length = {
    str(n): {"token_accuracy": accuracy(n)}
    for n in range(1, data.PROTOCOLS[protocol].longest + 1)
  }
  write(folder, name, {"protocol": protocol, "by_length": by_length})


def write(folder, name, results):
  (folder / name).mkdir()
  seed = {"seed": int(name.rpartition("-")[2])}
  text = json.dumps(MADE | seed | results)
  (folder / name / "results.json").write_text(text)


def test_unfinished_table_shows_what_is_there(tmp_path, capsys):
  finish(tmp_path, "palin-nam_tm-cpu-0", 1.0, 1.0, 0.99)
  finish(tmp_path, "palin-nam_tm-cpu-1", 1.0, 0.5, 0.98)
  finish(tmp_path, "copy-lstm-cpu-0", 0.25, 0.125, 0.0)
  arguments = ["--tasks=palin,copy", "--models=nam_tm,lstm", "--seeds=0,1,2"]
  folder = f"--folder={tmp_path}"
  assert table.main([folder, *arguments, "--show"]) == 0
  assert capsys.readouterr().out.splitlines() == [
    "model   palin                                           copy",
    "nam_tm  100/75.0/98.5 [4 ep, 2.1 min] x2 (100/100/100)  -",
    "lstm    - (100/100/100)                                 "
    "25.0/12.5/0.0 [4 ep, 2.1 min] x1",
  ]
  arguments = ["--tasks=copy", "--models=lstm", "--show", "--markdown"]
  table.main([folder, *arguments])
  assert capsys.readouterr().out.splitlines() == [
    "| model | copy                          |",
    "| ----- | ----------------------------- |",
    "| lstm  | 25.0/12.5/0.0 [4 ep, 2.1 min] |",
  ]


def test_missing_cells_are_run_and_finished_ones_skipped(
  tmp_path, capsys, monkeypatch
):
  finish(tmp_path, "palin-dnc-cpu-0", 1.0, 1.0, 1.0)
  monkeypatch.setattr(record, "when", lambda: {"date": "", "commit": ""})
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


def test_other_suites_pass_their_settings_to_the_script(tmp_path, monkeypatch):
  commands = []

  def fake_run(command, stdout, stderr):
    commands.append([str(word) for word in command])
    return subprocess.CompletedProcess(command, 0)

  monkeypatch.setattr(subprocess, "run", fake_run)

  def call(suite, *arguments):
    commands.clear()
    table.main([f"--folder={tmp_path}", f"--suite={suite}", *arguments])
    return [[c[2].rpartition("/")[2], *c[5:]] for c in commands]

  assert call("state_tracking", "--tasks=S5", "--models=nam,nam_2writes") == [
    ["state_tracking.py:S5,nam,cpu"],
    ["state_tracking.py:S5,nam,cpu", "--config.model_kwargs.num_writes=2"],
  ]
  assert call("recall", "--tasks=repeated-32", "--models=softmax") == [
    [
      "recall.py:transformer,repeated,cpu",
      "--config.model_kwargs.emb_dim=32",
    ]
  ]
  assert call("paper", "--tasks=fib", "--models=nam_tm_nojump_nostate") == [
    [
      "fib.py:nam_tm_nojump,cpu",
      "--config.model_kwargs.state_features=0",
    ]
  ]
  assert len(call("chomsky")) == 15 * 3
  assert len(call("chomsky", "--models=lstm", "--preset=converged")) == 15
  assert len({path.name for path in tmp_path.iterdir()}) == 4 + 45 + 15


def test_chomsky_counts_lengths_from_41_and_the_best_seed(tmp_path, capsys):
  for seed, accuracy in enumerate((0.5, 0.75)):
    finish_protocol(
      tmp_path,
      f"parity-nam-cpu-{seed}",
      "chomsky",
      lambda n, far=accuracy: far if n > 40 else 1.0,
    )
  file = tmp_path / "results.json"
  file.write_text("{}")
  folder = f"--folder={tmp_path}"
  table.main(
    [folder, "--suite=chomsky", "--show", "--seeds=0,1", f"--json={file}"]
  )
  lines = capsys.readouterr().out.splitlines()
  assert len(lines) == 16  # a line for each task
  (parity,) = [line for line in lines if line.startswith("parity ")]
  cells = [text.strip() for text in parity.split("  ")]
  assert "75.0 (62.5) [4 ep, 2.1 min] x2" in cells
  assert cells[-1] == "100.0"
  written = json.loads(file.read_text())
  made = written["algorithmic_chomsky"]
  assert made["command"] == (
    "python algorithmic_table.py --suite=chomsky --seeds=0,1"
  )
  assert made["columns"] == [
    *("task", "nam", "RNN, published", "Stack-RNN, published"),
    *("Tape-RNN, published", "Transformer, published", "LSTM, published"),
  ]
  assert made["machine"] == "cpu, 1 core, JAX 0.10.2"
  assert made["commit"] == record.when()["commit"]
  for row in made["rows"]:
    assert all(docs_tables.provenance(made, row).values())
  text = docs_tables.as_markdown(written, "algorithmic_chomsky")
  assert "| parity | 75.0 (62.5) [4 ep, 2.1 min] x2 | 100.0 |" in text
  assert "Not yet checked against the paper: even_pairs," in text


def test_state_tracking_is_scaled_by_the_chance_of_each_task(tmp_path, capsys):
  cases = {"parity": 0.75, "modular_arithmetic": 0.1, "S5": 1.0}
  for task, accuracy in cases.items():
    finish_protocol(
      tmp_path,
      f"{task}-nam-cpu-0",
      "state_tracking",
      lambda n, far=accuracy: far if n >= 40 else 0.0,
    )
  arguments = [f"--tasks={','.join(cases)}", "--models=nam", "--show"]
  table.main([f"--folder={tmp_path}", "--suite=state_tracking", *arguments])
  nam = capsys.readouterr().out.splitlines()[1].split()
  assert nam[1] == "0.500"
  assert nam[6] == "0.000"  # worse than guessing
  assert nam[11] == "1.000"
  assert suites.chance("S5") == 1 / 120
  assert suites.chance("cycle_navigation") == 1 / 5


def test_recall_shows_and_draws_accuracy_by_pairs(tmp_path, capsys):
  finish_protocol(
    tmp_path, "recall-16-nam-cpu-0", "recall", lambda n: 1 - n / 128
  )
  arguments = [f"--folder={tmp_path}", "--suite=recall", "--show"]
  picture = tmp_path / "pictures" / "recall.png"
  few = ["--tasks=recall-16,repeated-16", "--models=nam,linear"]
  table.main([*arguments, *few, f"--picture={picture}"])
  assert "97/94/88/75 [4 ep" in capsys.readouterr().out
  assert picture.read_bytes().startswith(b"\x89PNG")
  table.main([*arguments, "--tasks=repeated-16", f"--picture={picture}"])
  assert "no run of recall is finished" in capsys.readouterr().out
  with pytest.raises(SystemExit):
    table.main(["--show", f"--picture={picture}"])
  assert "add --suite=recall" in capsys.readouterr().err


def test_papers_table_is_recorded_with_its_numbers_beside(tmp_path):
  finish(tmp_path, "palin-nam_tm-cpu-0", 1.0, 1.0, 0.99)
  file = tmp_path / "results.json"
  file.write_text("{}")
  table.main([f"--folder={tmp_path}", "--show", f"--json={file}"])
  written = json.loads(file.read_text())
  text = docs_tables.as_markdown(written, "algorithmic_paper")
  cell = "| nam_tm | 100/100/99.0 [4 ep, 2.1 min] (100/100/100) |\n"
  assert cell in text
  assert len(written["algorithmic_paper"]["rows"]) == 1  # only what was run


def test_a_recorded_table_grows_without_its_folders(
  tmp_path, capsys, monkeypatch
):
  started = []

  def fake_run(command, stdout, stderr):
    started.append(command[2].rpartition("/")[2])
    return subprocess.CompletedProcess(command, 0)

  monkeypatch.setattr(subprocess, "run", fake_run)
  made = {"date": "2026-11-18", "commit": "abc1234"}
  monkeypatch.setattr(record, "when", made.copy)
  file = tmp_path / "results.json"

  def call(folder, *arguments):
    started.clear()
    place = tmp_path / folder
    place.mkdir(exist_ok=True)
    words = [f"--folder={place}", "--suite=recall", f"--json={file}"]
    table.main([*words, *arguments])
    return [line.strip() for line in capsys.readouterr().out.splitlines()]

  def finished(folder, name, accuracy):
    (tmp_path / folder).mkdir()
    finish_protocol(tmp_path / folder, name, "recall", lambda _: accuracy)

  finished("first", "recall-16-nam-cpu-0", 0.5)
  first = ["--models=nam", "--tasks=recall-16"]
  assert "50/50/50/50 [4 ep, 2.1 min]" in call("first", *first)[-1]
  (run,) = json.loads(file.read_text())["algorithmic_recall"]["runs"]
  assert (run["row"], run["task"], run["seed"]) == ("nam", "recall-16", 0)
  assert run["value"] == [0.5] * 32
  # The folder is gone: only what was not recorded is run.
  finished("second", "recall-16-nam-cpu-1", 1.0)
  lines = call("second", *first, "--seeds=0,1,2")
  assert started == ["recall.py:nam,cpu"]  # seed 2
  assert "75/75/75/75 [4 ep, 2.1 min] x2" in lines[-1]
  finished("third", "recall-16-linear-cpu-0", 0.25)
  picture = tmp_path / "recall.png"
  call("third", "--models=linear", "--show", f"--picture={picture}")
  assert picture.exists()
  made = json.loads(file.read_text())["algorithmic_recall"]
  assert made["command"] == (
    "python algorithmic_table.py --suite=recall --seeds=0,1"
  )
  assert made["rows"] == [
    {
      "task": "recall-16",
      "linear": "25/25/25/25 [4 ep, 2.1 min] x1",
      "nam": "75/75/75/75 [4 ep, 2.1 min] x2",
    }
  ]
  # Runs with other settings are another table.
  with pytest.raises(SystemExit):
    call("third", "--show", "--config.num_steps=3")
  assert "has algorithmic_recall with other settings (none)" in (
    capsys.readouterr().err
  )
  assert len(json.loads(file.read_text())) == 1


def test_a_table_is_recorded_after_every_run(tmp_path, monkeypatch):
  file, recorded = tmp_path / "results.json", []
  call = ["--suite=recall", "--tasks=recall-16", f"--json={file}"]

  def runs():
    if not file.exists():
      return []
    made = json.loads(file.read_text())["algorithmic_recall"]["runs"]
    return [(run["row"], run["seed"]) for run in made]

  def fake_run(command, stdout, stderr):
    patience = time.monotonic() + 60
    while recorded and not runs() and time.monotonic() < patience:
      time.sleep(0.01)  # the first run is being recorded
    recorded.append(runs())
    (workdir,) = [w for w in map(str, command) if w.startswith("--workdir=")]
    name = workdir.rpartition("/")[2]
    finish_protocol(tmp_path, name, "recall", lambda _: 0.5)
    if len(recorded) == 2:  # another process records its own run
      folder = tmp_path / "other"
      folder.mkdir()
      finish_protocol(folder, "recall-16-linear-cpu-7", "recall", lambda _: 1.0)
      other = ["--models=linear", "--seeds=7", "--show", f"--folder={folder}"]
      table.main([*call, *other])
    return subprocess.CompletedProcess(command, 0)

  monkeypatch.setattr(subprocess, "run", fake_run)
  made = {"date": "2026-11-19", "commit": "abc1234"}
  monkeypatch.setattr(record, "when", made.copy)
  models = ["--models=nam,linear", "--seeds=0", f"--folder={tmp_path}"]
  assert table.main([*call, *models]) == 0
  assert recorded == [[], [("nam", 0)]]
  assert set(runs()) == {("nam", 0), ("linear", 0), ("linear", 7)}


def test_suites_name_tasks_and_models_that_exist():
  for name, suite in suites.SUITES.items():
    for row in suite.rows.values():
      assert row.model in NAMES["models"]
    for task in suite.tasks:
      config = suite.config(task, "nam").rpartition("/")[2]
      file, _, argument = config.partition(".py:")
      assert file in (task, "task", name)
      assert "nam" in argument
    for numbers in suite.published.values():
      assert set(numbers) <= set(suite.tasks)
  assert suites.SUITES["chomsky"].tasks == chomsky.TASKS
  assert set(published.CHOMSKY_UNCHECKED) < set(chomsky.TASKS)
  assert suites.SUITES["paper"].tasks == paper.TASKS
  with pytest.raises(SystemExit):
    table.main(["--suite=chomski"])
