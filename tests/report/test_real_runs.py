"""The report understands what the scripts really write."""

import dataclasses
import json
import runpy
import sys

import pytest

from algorithmic import data
from algorithmic.config import AlgorithmicConfig
from configs import saved
from configs.algorithmic import fib
from configs.fewshot import mini_imagenet
from configs.lra import listops
from fewshot.config import FewShotConfig
from lra_tasks.config import LRAConfig
from nam_jax import training
from nam_jax.models import registry
from nam_jax.training import whole_files
from report import find, page
from tests import page_commands, project_tree
from tests.algorithmic import test_run as algorithmic
from tests.fewshot import test_run as fewshot
from tests.lra_tasks import test_run as lra
from tests.report.parsed import Page
from tests.report.test_page import NOW

# ml_collections loads config files in a way that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module")


@pytest.fixture(scope="module")
def root(tmp_path_factory):
  """A folder with a tiny run of every script."""
  root = tmp_path_factory.mktemp("runs")
  with pytest.MonkeyPatch.context() as patch:
    for name, split in data.SPLITS.items():
      patch.setitem(data.SPLITS, name, split._replace(size=24))
    patch.setitem(registry.CORES, "guess", algorithmic.Guess)
    algorithmic.guess(root / "palin")
  sizes = (*lra.TINY, *lra.TINY_MODEL, *lra.TINY_LISTOPS)
  config = f"--config={lra.CONFIGS}/listops.py:nam,plain"
  lra.run(config, *sizes, f"--workdir={root}/listops")
  flags = ("--config.shots=(1,)", "--config.curve_shots=()")
  fewshot.run(root / "glyphs", *flags, heads="cosine")
  return root


def test_runs_of_every_script_are_read(root):
  runs, problems = find.find(root)
  assert problems == []
  kinds = {run.name: run.kind.title for run in runs}
  assert kinds == {
    "glyphs": "Few-shot learning",
    "listops": "Long Range Arena",
    "palin": "Algorithmic tasks",
  }
  assert None not in [run.facts for run in runs]
  assert all(run.curves and run.versions for run in runs)
  shown = Page(page.build(root, find.Found(runs, problems), NOW))
  assert shown.row("palin", "guess", "cpu", "0")[10] == "2"
  assert shown.row("listops", "nam", "0")[7] == "3"
  assert len(shown.row("cosine")) == 8


@pytest.mark.parametrize(
  ("name", "cls"),
  [
    ("palin", AlgorithmicConfig),
    ("glyphs", FewShotConfig),
    ("listops", LRAConfig),
  ],
)
def test_command_in_the_page_makes_the_same_run(root, monkeypatch, name, cls):
  monkeypatch.chdir(project_tree.ROOT)
  monkeypatch.setitem(registry.CORES, "guess", algorithmic.Guess)
  (run,) = [run for run in find.find(root).runs if run.name == name]
  file = str(run.folder / "config.json")
  text = run.kind.command(file, str(run.folder), run.config)
  python, script, *words = text.replace("\\\n", "").split()
  assert python == "python"

  def stop(fields, wanted):
    assert wanted is cls
    read.append(from_config_dict(fields, wanted))
    raise page_commands.Started

  read, from_config_dict = [], training.from_config_dict
  monkeypatch.setattr(training, "from_config_dict", stop)
  monkeypatch.setattr(sys, "argv", [script, *words])
  with pytest.raises(page_commands.Started):
    runpy.run_path(script, run_name="__main__")
  (config,) = read
  settings = json.loads(json.dumps(dataclasses.asdict(config)))
  assert settings | {"fingerprint": run.config["fingerprint"]} == run.config


@pytest.mark.parametrize(
  ("fields", "cls"),
  [
    (fib.get_config("nam_tm"), AlgorithmicConfig),
    (listops.get_config("nam,cpu"), LRAConfig),
    (mini_imagenet.get_config("all,cpu"), FewShotConfig),
  ],
)
def test_saved_config_is_the_config(tmp_path, fields, cls):
  config = training.from_config_dict(fields, cls)
  whole_files.write_json(tmp_path / "config.json", dataclasses.asdict(config))
  again = saved.get_config(str(tmp_path / "config.json"))
  assert training.from_config_dict(again, cls) == config
