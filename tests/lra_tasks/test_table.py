"""Tables of the Long Range Arena: what runs and what is printed."""

import json
import shutil
import subprocess
import threading

import pytest

from command_line import machine, record
from docs import tables as docs_tables
from lra_tasks import config, paper, published, table

# ml_collections loads config files in a way that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module")


def finish(folder, name, accuracy, validation=0.5, **changed):
  """Writes the results of a finished run."""
  task, attention, *_, seed = name.split("-")
  results = {
    "task": task,
    "attention": attention,
    "seed": int(seed),
    "parameters": 77_258,
    "last": {"step": 1000, "accuracy": accuracy - 0.01},
    "best": {"step": 900, "accuracy": accuracy},
    "validation_accuracy": validation,
    "validation_is_test": task == "text",
    "steps_per_second": 12.34,
    "wall_seconds": 90.0,
    "machine": {"device": "cpu", "cores": 1},
    "peak_memory_bytes": 300 * 2**20,
    "versions": {"jax": "0.10.2"},
    **changed,
  }
  (folder / name).mkdir()
  (folder / name / "results.json").write_text(json.dumps(results))
  rows = [
    {"kind": "train", "step": 500, "loss": 1.0, "seconds": 29.0},
    {"kind": "eval", "step": 500, "accuracy": accuracy / 2, "seconds": 30.0},
    {"kind": "eval", "step": 1000, "accuracy": accuracy, "seconds": 60.0},
  ]
  text = "".join(json.dumps(row) + "\n" for row in rows)
  (folder / name / "metrics.jsonl").write_text(text)


@pytest.fixture
def commands(tmp_path, monkeypatch):
  """Replaces all runs; those whose arguments name "linear" fail.

  A run writes the results that `commands` has by its name.
  """
  made = []

  def fake_run(command, stdout, stderr):
    words = [str(word) for word in command[2:]]
    made.append(words)
    (name,) = [w.rpartition("/")[2] for w in words if "--workdir" in w][-1:]
    if "linear" in name:
      return subprocess.CompletedProcess(command, 1)
    if name.endswith("-pace"):
      pace = {"step_seconds": 0.1, "evaluation_seconds": 2.0}
      (tmp_path / name).mkdir()
      (tmp_path / name / "pace.json").write_text(json.dumps(pace))
    else:
      best = "erase" in name or "softmax" in name
      finish(tmp_path, name, 0.25, 0.5 + 0.1 * best)
    return subprocess.CompletedProcess(command, 0)

  monkeypatch.setattr(subprocess, "run", fake_run)
  return made


def call(folder, *options):
  return table.main([f"--folder={folder}", *options])


def test_a_table_has_a_row_for_each_attention(tmp_path, capsys):
  finish(tmp_path, "listops-nam-cpu-0", 0.25)
  finish(tmp_path, "listops-nam-cpu-1", 0.27)
  options = ("--attentions=nam,nam_erase", "--seeds=0,1", "--show")
  assert call(tmp_path, *options) == 0
  first, header, row, missing, _, *note = capsys.readouterr().out.splitlines()
  assert first == "listops, preset cpu, as many updates as the preset says"
  assert header.split("  ")[0] == "attention"
  cells = [cell.strip() for cell in row.split("  ") if cell]
  assert cells == [
    *("nam", "26.00 ±1.41", "25.00 ±1.41", "1,000", "12.3", "77,258"),
    *("300 MiB", "1.5", "0, 1", "36.1, 2.66x"),
  ]
  assert missing.split() == ["nam_erase", *["-"] * 8]
  text = " ".join(note)
  assert "arXiv 2502.16249" in text
  for number in ("36.37", "16.13", "16.78", "62.25", "62.15", "63.14"):
    assert number in text


def test_without_held_out_rows_the_last_state_is_tested(tmp_path, capsys):
  finish(tmp_path, "text-nam-cpu-0", 0.75)
  call(tmp_path, "--attentions=nam", "--show", "--markdown")
  text = capsys.readouterr().out
  assert "| nam       | 74.00         | 74.00 |" in text
  assert "No rows are held out" in text


def test_missing_runs_are_made_with_the_data_they_need(
  tmp_path, capsys, commands
):
  finish(tmp_path, "image-nam-cpu-3", 0.3)
  options = ["--seed=3", "--attentions=nam", "--config.batch_size=2"]
  data = "--data_dir=data"
  assert call(tmp_path, "--tasks=listops,text,image", data, *options) == 0
  for name, words in zip(("listops", "text"), commands, strict=True):
    assert words[0].endswith(f"configs/lra/{name}.py:nam,cpu")
    assert words[1:] == [
      "--config.seed=3",
      f"--workdir={tmp_path}/{name}-nam-cpu-3",
      "--config.batch_size=2",
      *([data] if name == "text" else []),
    ]
  assert "text-nam-cpu-3 ended with status 0" in capsys.readouterr().out


def test_a_number_of_steps_is_part_of_command_and_folder(tmp_path, commands):
  options = ("--tasks=listops", "--attentions=nam", "--steps=1200")
  call(tmp_path, *options, "--preset=plain", "--config.warmup_steps=7")
  assert commands[0][2:] == [
    f"--workdir={tmp_path}/listops-nam-plain-1200steps-0",
    "--config.num_steps=1200",
    "--config.warmup_steps=14",
    "--config.log_every=120",
    "--config.eval_every=120",
    "--config.checkpoint_every=120",
    "--config.warmup_steps=7",
  ]


def test_minutes_are_measured_once_and_become_steps(tmp_path, commands):
  options = ("--tasks=listops", "--attentions=nam", "--minutes=50")
  assert call(tmp_path, *options) == 0
  pace, train = commands
  folder = f"--workdir={tmp_path}/listops-nam-cpu-50min"
  assert pace[-2:] == [f"{folder}-pace", "--time_only=60"]
  assert train[2] == f"{folder}-0"
  assert train[3] == f"--config.num_steps={(50 * 60 - 20) * 10}"
  call(tmp_path, *options, "--seeds=0,1")
  (another,) = commands[2:]
  assert another[2] == f"{folder}-1"
  assert another[3:] == train[3:]


def test_a_run_whose_pace_is_unknown_is_left_out(tmp_path, capsys, commands):
  options = ("--tasks=listops", "--attentions=nam,linear", "--minutes=1")
  assert call(tmp_path, *options) == 1
  assert len(commands) == 3
  assert "listops-linear is left out: its pace is" in capsys.readouterr().out


def test_the_two_best_rows_get_further_seeds(tmp_path, commands):
  rows = "--attentions=softmax,nam,nam_erase"
  call(tmp_path, "--tasks=listops", rows, "--best_seeds=0,1,2")
  names = [words[2].rpartition("/")[2] for words in commands]
  assert names[:3] == [
    "listops-softmax-cpu-0",
    "listops-nam-cpu-0",
    "listops-nam_erase-cpu-0",
  ]
  assert sorted(names[3:]) == [
    "listops-nam_erase-cpu-1",
    "listops-nam_erase-cpu-2",
    "listops-softmax-cpu-1",
    "listops-softmax-cpu-2",
  ]


def test_tasks_without_data_are_left_out(tmp_path, capsys, commands):
  (tmp_path / "data").mkdir()
  rows = tuple(
    f"--config.task_kwargs.num_{split}=4"
    for split in ("train", "validation", "test")
  )
  options = ("--attentions=nam", f"--data_dir={tmp_path / 'data'}", *rows)
  with pytest.MonkeyPatch.context() as patch:
    patch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    call(tmp_path, *options)
  out = capsys.readouterr().out
  assert [words[2].rpartition("/")[2] for words in commands] == [
    "listops-nam-cpu-0"
  ]
  for task in ("text", "retrieval", "image", "pathfinder"):
    assert f"{task} is left out: " in out


def test_every_job_has_cores_of_its_own(tmp_path, monkeypatch):
  both, pinned = threading.Barrier(2, timeout=10), []

  def fake_run(command, stdout, stderr):
    both.wait()
    return subprocess.CompletedProcess(command, 0)

  monkeypatch.setattr(subprocess, "run", fake_run)
  monkeypatch.setattr(machine, "cores", lambda: [2, 3, 4, 6, 7])
  monkeypatch.setattr(machine, "pin", pinned.append)
  rows = "--attentions=softmax,linear,nam,nam_erase"
  call(tmp_path, "--tasks=listops", rows, "--jobs=2")
  assert sorted(pinned) == [[2, 3], [4, 6]]


@pytest.mark.parametrize(
  ("options", "message"),
  [
    (("--attentions=nan",), "unknown attention 'nan'; did you mean 'nam'"),
    (("--tasks=imag",), "unknown task 'imag'; did you mean 'image'"),
    (("--minutes=1", "--steps=2"), "give --minutes or --steps, not both"),
    (("--steps=0",), "--steps=0 must be positive"),
    (("--steps=2", "--config.num_steps=3"), "leave --config.num_steps out"),
    (("--jobs=0",), "--jobs=0 must be at least 1"),
    (("--show",), "holds none of these runs"),
  ],
)
def test_a_mistake_is_one_line(tmp_path, capsys, options, message):
  with pytest.raises(SystemExit) as end:
    call(tmp_path, *options)
  assert end.value.code == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert message in line


def test_pictures_have_a_line_for_each_seed(tmp_path):
  finish(tmp_path, "image-nam-cpu-0", 0.3)
  finish(tmp_path, "image-linear-cpu-0", 0.2)
  options = ("--show", f"--pictures={tmp_path / 'pictures'}")
  call(tmp_path, "--attentions=nam,linear,softmax", *options)
  (picture,) = (tmp_path / "pictures").iterdir()
  assert picture.name == "lra_image.png"
  assert picture.read_bytes().startswith(b"\x89PNG")


def test_what_is_recorded_is_a_table_of_the_pages(tmp_path):
  finish(tmp_path, "listops-nam-cpu-20min-0", 0.25)
  file = tmp_path / "results.json"
  file.write_text('{"other": {"columns": ["a"], "rows": [{"a": "1"}]}}')
  call(
    tmp_path,
    *("--minutes=20", "--attentions=nam,linear", "--data_dir=mine", "--show"),
    *("--tasks=listops", f"--json={file}", "--config.batch_size=8"),
  )
  found = json.loads(file.read_text())
  assert list(found) == ["other", "lra_listops"]
  made = found["lra_listops"]
  (row,) = made["rows"]
  assert all(docs_tables.provenance(made, row).values())
  assert made["command"] == (
    "python lra_table.py --tasks=listops --attentions=nam,linear"
    " --minutes=20.0 --config.batch_size=8 --data_dir=DIR"
  )
  assert made["machine"] == "cpu, 1 core, JAX 0.10.2"
  assert made["commit"] == record.when()["commit"]
  text = docs_tables.as_markdown(found, "lra_listops")
  assert "| nam | 25.00 | 24.00 | 1,000 |" in text
  assert "| 0 | 36.1 |" in text
  assert "20 min of training" in text


def test_a_recorded_table_grows_by_runs_of_the_same_effort(tmp_path):
  file = tmp_path / "results.json"
  file.write_text("{}")

  def record_only(name, minutes):
    finish(tmp_path, f"listops-{name}-cpu-{minutes}min-0", 0.25)
    call(
      tmp_path,
      *(f"--minutes={minutes}", f"--attentions={name}", "--show"),
      *("--tasks=listops", f"--json={file}"),
    )
    made = json.loads(file.read_text())["lra_listops"]
    for row in made["rows"]:
      assert all(docs_tables.provenance(made, row).values())
    return [row["attention"] for row in made["rows"]]

  assert record_only("nam", 20) == ["nam"]
  assert record_only("linear", 20) == ["nam", "linear"]
  shutil.rmtree(tmp_path / "listops-nam-cpu-20min-0")
  assert record_only("softmax", 20) == ["nam", "linear", "softmax"]
  assert record_only("nam", 5) == ["nam"]


def test_default_rows_exist_and_published_numbers_are_complete():
  assert set(table.TABLE.rows) <= set(config.NAMES["attentions"])
  assert set(paper.RESULTS) <= set(table.TABLE.rows)
  for accuracies in published.RESULTS.values():
    assert list(accuracies) == list(config.NAMES["tasks"])
