"""Imports point one way only: ops -> layers -> baselines -> models."""

import ast
import pathlib
import sys
from collections.abc import Iterator

import pytest

from tests import project_tree

# What each package may import of ours, besides itself. The files that are not
# listed here (scripts, tests) and those in FREE may import everything.
OURS = {
  "nam_jax.ops": (),
  "nam_jax.layers": ("nam_jax.ops",),
  "nam_jax.baselines": ("nam_jax.ops", "nam_jax.layers"),
  "nam_jax.models": ("nam_jax.ops", "nam_jax.layers", "nam_jax.baselines"),
  "nam_jax.training": ("nam_jax.version",),
  "nam_jax.files": (),
  "nam_jax.paper": (),
  "nam_jax.report": (
    "nam_jax.paper",
    "nam_jax.training",
    "nam_jax.version",
    "nam_jax.viz",
  ),
  "nam_jax.version": (),
  "nam_jax.viz": (),
  "nam_jax": (),
  "fewshot": ("nam_jax.ops", "nam_jax.layers", "nam_jax.files"),
  "lra_tasks": ("nam_jax.files",),
  "benchmarks": (
    "nam_jax",
    "nam_jax.ops",
    "nam_jax.models",
    "nam_jax.training",
    "nam_jax.viz",
    "fewshot",
    "experiments",
  ),
  "algorithmic": (),
  "configs": (),
}
FREE = ("nam_jax/__init__.py",)

# What each package may import of others' work, besides the standard library;
# the packages that are not listed here may import anything installed.
OTHERS = {
  "nam_jax.ops": ("jax", "numpy", "jaxtyping"),
  "nam_jax.layers": ("jax", "numpy", "jaxtyping", "flax"),
  "nam_jax.baselines": ("jax", "numpy", "jaxtyping", "flax"),
  "nam_jax.models": ("jax", "numpy", "jaxtyping", "flax"),
  "nam_jax.files": ("numpy", "PIL", "array_record"),
  "nam_jax.paper": (),
  "nam_jax.report": ("matplotlib",),
  "nam_jax.viz": ("matplotlib", "numpy"),
  "configs": ("ml_collections",),
}
PICKLERS = ("pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve")


def imports(
  tree: ast.AST, package: list[str]
) -> Iterator[tuple[int, str, str]]:
  """Yields (line, full dotted name, name it is bound to) of every import."""
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      base = []
    elif isinstance(node, ast.ImportFrom):
      base = package[: len(package) + 1 - node.level] if node.level else []
      base = base + ([node.module] if node.module else [])
    else:
      continue
    for alias in node.names:
      name = ".".join([*base, alias.name])
      yield node.lineno, name, alias.asname or alias.name


def owner(name: str) -> str:
  """The package of ours a dotted name belongs to, else its first part."""
  parts = name.split(".")
  pair = ".".join(parts[:2])
  return pair if pair in OURS else parts[0]


def is_allowed(package: str, target: str, ours: set[str]) -> bool:
  """Whether a module of package may import something of target."""
  top = target.split(".")[0]
  if top in ours:
    return target == package != "nam_jax" or target in OURS[package]
  return (
    top in sys.stdlib_module_names
    or package not in OTHERS
    or top in OTHERS[package]
  )


def complaints(root: pathlib.Path) -> list[str]:
  """One line for each forbidden import below root."""
  ours = {path.stem for path in root.iterdir()}
  found = []
  for path in project_tree.files(root, "*.py"):
    relative = path.relative_to(root)
    package = owner(".".join(relative.with_suffix("").parts))
    ruled = package in OURS and relative.as_posix() not in FREE
    tree = ast.parse(path.read_text())
    for line, name, bound in imports(tree, list(relative.parent.parts)):
      where = f"{relative.as_posix()}:{line}"
      if ruled and not is_allowed(package, owner(name), ours):
        found.append(f"{where} imports {name}")
      if name == "jax.numpy" and bound == "np":
        found.append(f"{where} calls jax.numpy np")
      if name.split(".")[0] in PICKLERS:
        found.append(f"{where} pickles by {name}")
  return found


def test_imports_follow_the_direction():
  found = complaints(project_tree.ROOT)
  assert not found, "\n".join(found)


@pytest.mark.parametrize(
  ("file", "line", "complaint"),
  [
    ("nam_jax/ops/a.py", "from nam_jax.layers import b", "nam_jax.layers.b"),
    ("nam_jax/ops/a.py", "from ..layers import b", "nam_jax.layers.b"),
    ("nam_jax/ops/a.py", "import nam_jax.training.loop", "training.loop"),
    ("nam_jax/ops/a.py", "from nam_jax import read", "imports nam_jax.read"),
    ("nam_jax/ops/a.py", "def f():\n  import flax", "a.py:2 imports flax"),
    ("nam_jax/ops/a.py", "import jax.numpy as np", "calls jax.numpy np"),
    ("nam_jax/ops/a.py", "from jax import numpy as np", "jax.numpy np"),
    ("nam_jax/layers/a.py", "import optax", "imports optax"),
    ("nam_jax/layers/a.py", "from nam_jax import models", "nam_jax.models"),
    ("nam_jax/models/a.py", "import train_lra", "imports train_lra"),
    ("nam_jax/training/a.py", "from nam_jax.ops import b", "nam_jax.ops.b"),
    ("nam_jax/helpers.py", "from nam_jax.ops import b", "nam_jax.ops.b"),
    ("nam_jax/files/a.py", "from nam_jax.ops import b", "nam_jax.ops.b"),
    ("nam_jax/files/a.py", "import lra_tasks.task", "lra_tasks.task"),
    ("nam_jax/files/a.py", "import jax", "imports jax"),
    ("nam_jax/report/a.py", "from experiments import b", "experiments.b"),
    ("nam_jax/report/a.py", "from nam_jax.ops import b", "nam_jax.ops.b"),
    ("nam_jax/viz.py", "from nam_jax import report", "nam_jax.report"),
    ("nam_jax/paper.py", "import numpy", "imports numpy"),
    ("nam_jax/training/a.py", "from nam_jax import report", "nam_jax.report"),
    ("algorithmic/a.py", "import nam_jax", "imports nam_jax"),
    ("algorithmic/a.py", "from nam_jax.files import b", "nam_jax.files.b"),
    ("lra_tasks/a.py", "from nam_jax.ops import b", "nam_jax.ops.b"),
    ("lra_tasks/a.py", "from algorithmic import b", "algorithmic.b"),
    ("fewshot/a.py", "from nam_jax import models", "nam_jax.models"),
    ("configs/a.py", "from nam_jax.ops import b", "nam_jax.ops.b"),
    ("benchmarks/a.py", "from tests.reference import b", "reference.b"),
    ("benchmarks/a.py", "import train_lra", "imports train_lra"),
    ("fewshot/a.py", "from benchmarks import b", "imports benchmarks.b"),
    ("train_lra.py", "import pickle", "pickles by pickle"),
  ],
)
def test_checker_finds_a_forbidden_import(tmp_path, file, line, complaint):
  write_tree(tmp_path, {file: line})
  (found,) = complaints(tmp_path)
  assert complaint in found


def test_checker_accepts_the_permitted_imports(tmp_path):
  write_tree(
    tmp_path,
    {
      "nam_jax/__init__.py": "from nam_jax.layers import a",
      "nam_jax/ops/a.py": "import math, jax.numpy as jnp\nfrom . import b",
      "nam_jax/layers/a.py": "import flax\nfrom nam_jax.ops import a",
      "nam_jax/models/a.py": "from nam_jax.baselines.b import c",
      "nam_jax/training/a.py": "import optax\nfrom nam_jax.training import b",
      "nam_jax/files/a.py": "import numpy\nfrom nam_jax.files import b",
      "nam_jax/report/a.py": "from nam_jax import paper, training, viz",
      "lra_tasks/a.py": "from nam_jax.files import a",
      "fewshot/a.py": "from nam_jax.ops import a\nfrom nam_jax.files import b",
      "configs/lra/a.py": "import ml_collections\nfrom configs.lra import b",
      "benchmarks/a.py": "import torch\nfrom experiments import lra_speed",
      "train_lra.py": "import lra_tasks, nam_jax.models, nam_jax.training",
    },
  )
  assert complaints(tmp_path) == []


def write_tree(root: pathlib.Path, sources: dict[str, str]) -> None:
  """Writes the sources below root, beside our empty top-level names."""
  for package in OURS:
    (root / package.split(".")[0]).mkdir(exist_ok=True)
  (root / "train_lra.py").touch()
  (root / "tests").mkdir()
  for file, source in sources.items():
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
