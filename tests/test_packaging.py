"""What is installed: the library and its licence, nothing else."""

import email
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

import nam_jax
from tests import project_tree

ROOT = project_tree.ROOT
EXTRAS = {
  "train",
  "plot",
  "export",
  "notebooks",
  "docs",
  "tf",
  "test",
  "cuda12",
  "cuda13",
  "tpu",
}

# A build environment has no jax: the version must be read, not imported.
BUILD = """
import sys
sys.modules["jax"] = sys.modules["flax"] = None
from setuptools import build_meta
build_meta.build_wheel("wheels")
"""

# What users import into their own models, and nothing that only an experiment
# needs: data sets, the paper's numbers, pages and scripts are outside.
ROOMS = {"baselines", "layers", "models", "nnx", "ops", "training"}
FILES = {"__init__.py", "spelling.py", "streaming.py", "version.py", "viz.py"}
EXPERIMENTS = re.compile(r"cifar|imdb|omniglot|imagenet|glyphs|palin|\bfib\b")

HEAVY = ("grain", "matplotlib", "ml_collections", "optax", "orbax")
HEAVY += ("tensorboardX", "tensorflow", "tensorflow_datasets")
IMPORT = """
import sys
import nam_jax, nam_jax.training
from nam_jax.training import losses, whole_files
print(*sys.modules)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
  """The wheel, built offline from a copy of the whole project."""
  source = tmp_path_factory.mktemp("build") / "source"
  shutil.copytree(
    ROOT, source, ignore=shutil.ignore_patterns(*project_tree.IGNORED)
  )
  build = subprocess.run(
    [sys.executable, "-c", BUILD], cwd=source, capture_output=True, text=True
  )
  assert build.returncode == 0, build.stderr
  assert "Deprecat" not in build.stderr, build.stderr
  (path,) = (source / "wheels").glob("*.whl")
  with zipfile.ZipFile(path) as archive:
    yield archive


@pytest.fixture(scope="module")
def metadata(wheel):
  """The wheel's METADATA as a mail message."""
  (name,) = [n for n in wheel.namelist() if n.endswith("/METADATA")]
  return email.message_from_bytes(wheel.read(name))


def test_wheel_holds_every_module_of_the_library_and_nothing_else(wheel):
  shipped = {n for n in wheel.namelist() if ".dist-info/" not in n}
  modules = project_tree.files(ROOT / "nam_jax", "*.py")
  expected = {path.relative_to(ROOT).as_posix() for path in modules}
  assert shipped == expected | {"nam_jax/py.typed"}


def test_wheel_carries_the_licence(wheel, metadata):
  (name,) = [n for n in wheel.namelist() if n.endswith("/LICENSE")]
  assert wheel.read(name) == (ROOT / "LICENSE").read_bytes()
  assert metadata["License-Expression"] == "Apache-2.0"


def test_wheel_states_version_and_extras(metadata):
  assert metadata["Version"] == nam_jax.__version__
  assert set(metadata.get_all("Provides-Extra")) == EXTRAS


def test_library_requires_jax_flax_and_jaxtyping_only(metadata):
  requirements = metadata.get_all("Requires-Dist")
  always = [line for line in requirements if "extra ==" not in line]
  assert [re.split(r"\W", line)[0] for line in always] == [
    "jax",
    "flax",
    "jaxtyping",
  ]


def test_import_loads_none_of_the_heavy_packages():
  run = subprocess.run(
    [sys.executable, "-c", IMPORT], cwd=ROOT, capture_output=True, text=True
  )
  assert run.returncode == 0, run.stderr
  loaded = run.stdout.split()
  assert "flax" in loaded
  assert set(HEAVY).isdisjoint(loaded)


def test_the_library_knows_no_experiment():
  entries = {p.name for p in (ROOT / "nam_jax").iterdir()}
  assert entries - {"__pycache__"} == ROOMS | FILES | {"py.typed"}
  named = {
    path.name: EXPERIMENTS.findall(path.read_text())
    for path in project_tree.files(ROOT / "nam_jax", "*.py")
  }
  assert {name: found for name, found in named.items() if found} == {}


def test_constraints_pin_versions_for_every_python():
  lines = (ROOT / "constraints.txt").read_text().splitlines()
  assert "make lock" in lines[1]
  pins = [line for line in lines if line[0] != "#"]
  pin = re.compile(r"[\w.-]+==[\w.]+( ; [\w.'<>=! ()]+)?")
  assert [line for line in pins if not pin.fullmatch(line)] == []
  assert len([line for line in pins if line.startswith("jax==")]) == 2
