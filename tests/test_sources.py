"""Public names are documented, and no file names a machine."""

import ast
import pathlib
import re

from tests import project_tree

ROOT = project_tree.ROOT
LIBRARY = sorted(project_tree.files(ROOT / "nam_jax", "*.py"))

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

MACHINE_PATH = re.compile(r"(?<![\w.~-])/(work|home|root|opt|Users|tmp)/\w")
REGISTRY_HOST = re.compile(r"\b(pypi|pythonhosted|anaconda)\.(org|com)\b")


def name_of(path: pathlib.Path) -> str:
  return path.relative_to(ROOT).as_posix()


def undocumented(source: str) -> list[str]:
  """The module and those of its public names that lack a docstring."""
  module = ast.parse(source)
  if not module.body:
    return []
  public = [
    node
    for node in module.body
    if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name[0] != "_"
  ]
  missing = [] if ast.get_docstring(module) else ["module"]
  return missing + [n.name for n in public if not ast.get_docstring(n)]


def foreign_strings(text: str) -> list[str]:
  """Machine paths and registry hosts in text."""
  patterns = (MACHINE_PATH, REGISTRY_HOST)
  return [m.group() for p in patterns for m in p.finditer(text)]


def text_of(path: pathlib.Path) -> str:
  """The file's text; empty for a binary file."""
  try:
    return path.read_text(encoding="utf-8")
  except UnicodeDecodeError:
    return ""


def test_public_names_are_documented():
  found = {name_of(path): undocumented(path.read_text()) for path in LIBRARY}
  assert {name: missing for name, missing in found.items() if missing} == {}


def test_no_file_names_a_machine_or_a_registry():
  texts = {name_of(p): text_of(p) for p in project_tree.files(ROOT)}
  assert {n: s for n, t in texts.items() if (s := foreign_strings(t))} == {}


def test_the_checks_can_fail():
  assert undocumented("class A:\n  pass\ndef _f():\n  pass") == ["module", "A"]
  path = "/".join(["", "home", "someone", "data"])
  host = ".".join(["pypi", "org"])
  assert foreign_strings(f"cd {path} && curl https://{host}") == [
    path[:7],
    host,
  ]
  assert foreign_strings("runs/home/x, https://a.b/opt/c") == []
