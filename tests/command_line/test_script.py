"""The command line of the scripts."""

import errno
import os
import sys

import pytest

from command_line import script
from nam_jax import training
from tests import project_tree


@pytest.mark.parametrize(
  ("arguments", "file"),
  [
    ((), "default.py"),
    (("--config=a/b.py",), "a/b.py"),
    (("--config=a/b.py:nam,cpu", "--config.seed=3"), "a/b.py"),
    (("--config", "c.py", "--test_only"), "c.py"),
    (("-config=c.py",), "c.py"),
    (("--config",), ""),
  ],
)
def test_config_file_is_found_on_the_command_line(arguments, file):
  argv = ["train.py", *arguments]
  assert script.config_file(argv, "default.py:nam") == file


@pytest.mark.parametrize(
  ("argument", "message"),
  [
    ("{0}/mine/sum.py:nam", "did you mean {0}/mine/sums.py?"),
    ("{0}/mine/listop.py", "did you mean {1}/listops.py?"),
    ("{0}/absent/listops", "did you mean {1}/listops.py?"),
    ("{0}/mine", "there are {1}/base.py, {1}/cifar10.py, {1}/image.py,"),
    ("", "there are {1}/base.py,"),
  ],
)
def test_a_config_file_that_is_not_there_is_named(tmp_path, argument, message):
  (tmp_path / "mine").mkdir()
  (tmp_path / "mine" / "sums.py").touch()
  ours = os.path.relpath(project_tree.ROOT / "configs" / "lra")
  argument = argument.format(tmp_path)
  with pytest.raises(training.UserError) as error:
    script.read(
      ["x", f"--config={argument}"], "", "configs/lra/listops.py:nam", {}, {}
    )
  text = str(error.value)
  file = argument.partition(":")[0]
  assert text.startswith(f"--config={file}: no such file; ")
  assert message.format(tmp_path, ours) in text


@pytest.mark.filterwarnings("ignore:the load_module")
@pytest.mark.parametrize(
  ("argument", "message"),
  [
    ("", "name a config.json: --config=configs/saved.py:CONFIG_JSON"),
    (":no.json", "No such file or directory: 'no.json'"),
  ],
)
def test_a_run_without_a_config_is_named(argument, message):
  file = project_tree.ROOT / "configs" / "saved.py"
  with pytest.raises(training.UserError) as error:
    script.read(["x", f"--config={file}{argument}"], "", str(file), {}, {})
  assert str(error.value) == message


def test_ending_names_files_and_commands(tmp_path, monkeypatch):
  monkeypatch.chdir(project_tree.ROOT)
  monkeypatch.setattr(sys, "executable", "/usr/bin/python3")
  monkeypatch.setattr(sys, "argv", ["train.py", "--config=a b.py", "--quick"])
  folder = tmp_path / "run"
  folder.mkdir()
  report = f"  python -m report {tmp_path}"
  assert script.ending(
    folder, sys.argv, "--quick", "--sweep=20"
  ).splitlines() == [
    f"results.json is in {folder}; to try next:",
    "  python train.py '--config=a b.py' --quick --sweep=20",
    report,
  ]
  (folder / "heads.png").touch()
  # Code that calls main with a list of its own has no such command.
  assert script.ending(folder, list(sys.argv), "--sweep=20").splitlines() == [
    f"results.json and pictures are in {folder}; to try next:",
    report,
  ]
  monkeypatch.chdir(tmp_path)
  last = script.ending(folder, sys.argv).splitlines()[-1]
  assert last == f"  cd {project_tree.ROOT}; python -m report {tmp_path}"


@pytest.mark.parametrize(
  ("error", "status", "line"),
  [
    (training.UserError("no such task"), 2, "error: no such task\n"),
    (
      OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "runs/a.png"),
      2,
      "error: cannot write runs/a.png: No space left on device; make room\n",
    ),
  ],
)
def test_error_is_one_line(error, status, line, capsys):
  def main(*_):
    raise error

  with pytest.raises(SystemExit) as stop:
    script.run(main, "")
  assert stop.value.code == status
  assert capsys.readouterr().err == line
