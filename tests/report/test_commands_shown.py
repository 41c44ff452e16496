"""The commands on the page repeat or continue the runs."""

import shlex
import sys

import pytest

from algorithmic import config as algorithmic_config
from algorithmic import run as algorithmic_run
from algorithmic.tasks import registry
from lra_tasks import config as lra_config
from report.run import command
from tests.report import folders
from tests.report.test_page import build

# ml_collections loads config files in a way that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module")

MODULE = """
from algorithmic.tasks import registry, strings

class Mine(strings.StringTask):
  name = "mine"

registry.TASKS["mine"] = Mine
"""


def shown(root):
  """The words of the one command on the page, and the comments above it."""
  (text,) = [c for c in build(root).commands if "configs/saved.py" in c]
  lines = text.splitlines()
  notes = [line for line in lines if line.startswith("#")]
  words = "\n".join(lines[len(notes) :]).replace("\\\n", "")
  return shlex.split(words), notes


def test_a_run_of_ours_is_repeated_by_its_script(tmp_path):
  folders.lra(tmp_path / "it's", num_steps=7)
  words, notes = shown(tmp_path)
  assert (words[:2], notes) == (["python", "train_lra.py"], [])
  config, _, flags = lra_config.read(words[1:], "")
  assert (config.task, config.num_steps) == ("listops", 7)
  assert flags.workdir == f"{tmp_path}/it's-again"


def test_a_task_of_ones_own_is_imported_first(tmp_path, monkeypatch):
  folders.algorithmic(tmp_path / "run", finished=False, task="mine")
  words, (note,) = shown(tmp_path)
  assert note == "# MODULE: yours, which registers task 'mine'"
  (tmp_path / "my_tasks.py").write_text(MODULE)
  found = []

  def main(argv, usage):
    config, flags = algorithmic_config.read(argv, usage)
    found.extend([registry.make_task(config.task).name, flags.workdir])

  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setattr(registry, "TASKS", dict(registry.TASKS))
  monkeypatch.setattr(algorithmic_run, "main", main)
  python, option, code, *arguments = words
  assert (python, option) == ("python", "-c")
  monkeypatch.setattr(sys, "argv", [option, *arguments])
  exec(code.replace("MODULE", "my_tasks"), {})
  assert found == ["mine", str(tmp_path / "run")]


def test_data_and_hostile_names_are_explained_in_comments():
  make = command("lra_tasks", "train_lra.py", {"task": ["text"]}, "task")
  text = make("a/config.json", "a", {"task": "x\nrm -rf ~\n"})
  module, data, first, *_ = text.splitlines()
  assert module == r"# MODULE: yours, which registers task 'x\nrm -rf ~\n'"
  assert data == "# DIR: the folder with the data"
  assert first.startswith(
    "python -c 'import MODULE; from lra_tasks import run;"
  )
  assert "MODULE" not in make("a/config.json", "a", {"task": "text"})
  assert make("", "", {}) == ""


def test_paths_start_at_the_checkout(tmp_path, monkeypatch):
  folders.lra(tmp_path / "runs" / "a")
  monkeypatch.chdir(tmp_path / "runs")
  monkeypatch.setattr("report.page._CHECKOUT", tmp_path)
  words, _ = shown(tmp_path / "runs")
  assert "--workdir=runs/a-again" in words
  assert "--config=configs/saved.py:runs/a/config.json" in words
