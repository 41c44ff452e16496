"""The command counts faults in a table, and its status says whether any."""

import json

import pytest

from chaos import __main__ as command
from chaos.lab import Lab
from docs import tables


@pytest.fixture
def planted(monkeypatch):
  """Trials that take no time: every other one loses something."""

  def trial(case, lab):
    del lab
    case.note("planted")
    if int(case.name.partition(":")[2]) % 2:
      case.blame("lost", "a row")

  monkeypatch.setattr(Lab, "make", lambda self: None)
  monkeypatch.setitem(command._HERE, "kills", trial)


OTHERS = [f"--{kind}=0" for kind in command.COUNTS if kind != "kills"]


@pytest.mark.usefixtures("planted")
def test_faults_are_counted_and_recorded(tmp_path, capsys):
  file = tmp_path / "results.json"
  file.write_text("{}")
  words = ["--kills=3", f"--folder={tmp_path}", f"--json={file}", *OTHERS]
  assert command.main(words) == 1
  out = capsys.readouterr().out
  assert "kills:0: planted: ok" in out
  assert "kills:1: planted: LOST: a row" in out
  assert "1 of 3 trials failed" in out
  assert [p.name for p in tmp_path.glob("kills-*")] == ["kills-1"]
  written = json.loads(file.read_text())
  (row,) = written["chaos"]["rows"]
  assert row == {
    "kind": "kills",
    "trials": "3",
    "lost": "1",
    "wrong": "0",
    "hung": "0",
    "tracebacks": "0",
  }
  assert all(tables.provenance(written["chaos"], row).values())
  assert str(tmp_path) not in written["chaos"]["command"]
  assert tables.as_markdown(written, "chaos")


@pytest.mark.usefixtures("planted")
def test_one_trial_can_be_repeated(tmp_path, capsys):
  assert command.main(["--only=kills:4", f"--folder={tmp_path}"]) == 0
  assert "kills:4: planted: ok" in capsys.readouterr().out


@pytest.mark.parametrize(
  ("option", "complaint"),
  [
    ("--only=kill:4", "'kill:4' is not kind:seed"),
    ("--kills=x", "'x' is not a number"),
  ],
)
def test_a_wrong_option_is_one_line(option, complaint, capsys):
  with pytest.raises(SystemExit) as stopped:
    command.main([option])
  assert stopped.value.code == 2
  (line,) = capsys.readouterr().err.splitlines()
  assert complaint in line
