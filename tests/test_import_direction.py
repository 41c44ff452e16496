"""Imports point one way only, as listed in the table below."""

import ast
import pathlib
import sys

import pytest

from tests import project_tree

LIBRARY = "nam_jax"
SHARED = f"{LIBRARY} command_line data_files report"
ARRAYS = "jax numpy jaxtyping"
NETWORKS = f"{ARRAYS} flax"
# What each room may import besides itself and the standard library: rooms of
# ours and, after a bar, packages of others (without a bar: any). The longest
# matching name counts; rooms that are not listed (scripts, tests, docs,
# notebooks) may import everything.
ROOMS = {
  "nam_jax.__init__": "nam_jax",
  "nam_jax.ops": f"| {ARRAYS}",
  "nam_jax.layers": f"nam_jax.ops | {NETWORKS}",
  "nam_jax.nnx": f"nam_jax.ops nam_jax.layers | {NETWORKS}",
  "nam_jax.baselines": f"nam_jax.ops nam_jax.layers | {NETWORKS}",
  "nam_jax.models": "nam_jax.ops nam_jax.layers nam_jax.baselines"
  f" nam_jax.spelling | {NETWORKS}",
  "nam_jax.training": "nam_jax.spelling nam_jax.version",
  "nam_jax.streaming": f"nam_jax.ops | {ARRAYS}",
  "nam_jax": f"| {NETWORKS} matplotlib",
  "command_line": LIBRARY,
  "data_files": f"{LIBRARY} command_line",
  "report": f"{LIBRARY} command_line",
  "algorithmic": SHARED,
  "lra_tasks": SHARED,
  "fewshot": f"{SHARED} configs",
  "benchmarks": f"{SHARED} lra_tasks fewshot",
  "chaos": f"{SHARED} lra_tasks fewshot",
  "configs": "| ml_collections",
}
PICKLERS = {"pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve"}


def is_in(name: str, rooms: list[str]) -> bool:
  return any(name == room or name.startswith(room + ".") for room in rooms)


def imports(tree: ast.AST, package: list[str]):
  """Yields (line, full dotted name, name it is bound to) of every import."""
  for node in ast.walk(tree):
    if isinstance(node, ast.Import | ast.ImportFrom):
      base = []
      if isinstance(node, ast.ImportFrom):
        base = package[: len(package) + 1 - node.level] if node.level else []
        base = base + ([node.module] if node.module else [])
      for alias in node.names:
        bound = alias.asname or alias.name
        yield node.lineno, ".".join([*base, alias.name]), bound


def complaints(root: pathlib.Path) -> list[str]:
  """One line for each forbidden import below root."""
  ours = {path.stem for path in project_tree.ROOT.iterdir()}
  found = []
  for path in project_tree.files(root, "*.py"):
    relative = path.relative_to(root)
    module = ".".join(relative.with_suffix("").parts)
    room = max((r for r in ROOMS if is_in(module, [r])), key=len, default="")
    own, bar, others = ROOMS.get(room, "").partition("|")
    allowed = [*own.split(), *([room] if room != "nam_jax" else [])]
    for line, name, bound in imports(
      ast.parse(path.read_text()), list(relative.parent.parts)
    ):
      top, where = name.split(".")[0], f"{relative.as_posix()}:{line}"
      if top in ours:
        is_allowed = is_in(name, allowed)
      else:
        known = top in sys.stdlib_module_names or top in others.split()
        is_allowed = not bar or known
      if room and not is_allowed:
        found.append(f"{where} imports {name}")
      if name == "jax.numpy" and bound == "np":
        found.append(f"{where} calls jax.numpy np")
      if top in PICKLERS:
        found.append(f"{where} pickles by {name}")
  return found


def test_imports_follow_the_direction():
  found = complaints(project_tree.ROOT)
  assert not found, "\n".join(found)


def test_scripts_import_one_experiment():
  for path in project_tree.ROOT.glob("*_*.py"):
    names = [name for _, name, _ in imports(ast.parse(path.read_text()), [])]
    experiments = {"algorithmic", "lra_tasks", "fewshot"}
    assert len(experiments & {name.split(".")[0] for name in names}) == 1


@pytest.mark.parametrize(
  ("file", "line", "complaint"),
  [
    ("nam_jax/ops/a.py", "from nam_jax.layers import b", "nam_jax.layers.b"),
    ("nam_jax/ops/a.py", "from ..layers import b", "nam_jax.layers.b"),
    ("nam_jax/ops/a.py", "from nam_jax import read", "imports nam_jax.read"),
    ("nam_jax/ops/a.py", "def f():\n  import flax", "a.py:2 imports flax"),
    ("nam_jax/ops/a.py", "from jax import numpy as np", "jax.numpy np"),
    ("nam_jax/layers/a.py", "import optax", "imports optax"),
    ("nam_jax/training/a.py", "from nam_jax.ops import b", "nam_jax.ops.b"),
    ("nam_jax/viz.py", "from nam_jax.ops import b", "nam_jax.ops.b"),
    ("nam_jax/models/a.py", "import report.page", "report.page"),
    ("data_files/a.py", "import lra_tasks.task", "lra_tasks.task"),
    ("report/a.py", "from algorithmic import section", "algorithmic.section"),
    ("lra_tasks/a.py", "from algorithmic import b", "algorithmic.b"),
    ("fewshot/a.py", "from benchmarks import b", "imports benchmarks.b"),
    ("configs/a.py", "from nam_jax.ops import b", "nam_jax.ops.b"),
    ("benchmarks/a.py", "import train_lra", "imports train_lra"),
    ("train_lra.py", "import pickle", "pickles by pickle"),
  ],
)
def test_checker_finds_a_forbidden_import(tmp_path, file, line, complaint):
  (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
  (tmp_path / file).write_text(line)
  (found,) = complaints(tmp_path)
  assert complaint in found
