"""The code stays small and documented, and names no machine."""

import ast
import pathlib
import re

import pytest

from tests import project_tree

ROOT = project_tree.ROOT
SOURCES = sorted(project_tree.files(ROOT, "*.py"))
LIBRARY = [path for path in SOURCES if path.is_relative_to(ROOT / "nam_jax")]

MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 60
MAX_SCRIPT_LINES = 89

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

MACHINE_PATH = re.compile(r"(?<![\w.~-])/(work|home|root|opt|Users|tmp)/\w")
REGISTRY_HOST = re.compile(r"\b(pypi|pythonhosted|anaconda)\.(org|com)\b")


def name_of(path: pathlib.Path) -> str:
  return path.relative_to(ROOT).as_posix()


def line_count(path: pathlib.Path) -> int:
  return len(path.read_text().splitlines())


def functions_longer_than(limit: int, source: str) -> list[str]:
  """Names and lengths of the functions in source over limit lines."""
  return [
    f"{node.name} ({node.end_lineno - node.lineno + 1} lines)"
    for node in ast.walk(ast.parse(source))
    if isinstance(node, FUNCTIONS) and node.end_lineno - node.lineno >= limit
  ]


def undocumented(source: str) -> list[str]:
  """The module and its public names, as far as they lack a docstring."""
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


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_files_and_functions_stay_short(path):
  assert line_count(path) <= MAX_FILE_LINES
  assert functions_longer_than(MAX_FUNCTION_LINES, path.read_text()) == []


def test_scripts_stay_shorter_still():
  lengths = {p.name: line_count(p) for p in ROOT.glob("*.py")}
  assert {n: c for n, c in lengths.items() if c > MAX_SCRIPT_LINES} == {}


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_public_names_are_documented(path):
  assert undocumented(path.read_text()) == []


def test_no_file_names_a_machine_or_a_registry():
  texts = {name_of(p): text_of(p) for p in project_tree.files(ROOT)}
  assert {n: s for n, t in texts.items() if (s := foreign_strings(t))} == {}


def test_the_checks_can_fail():
  body = "\n".join(["  x = 1"] * 59)
  assert functions_longer_than(60, f"def f():\n{body}") == []
  assert functions_longer_than(60, f"def f():\n{body}\n  y = 2") == [
    "f (61 lines)"
  ]
  assert undocumented("class A:\n  pass\ndef _f():\n  pass") == ["module", "A"]
  path = "/".join(["", "home", "someone", "data"])
  host = ".".join(["pypi", "org"])
  assert foreign_strings(f"cd {path} && curl https://{host}") == [
    path[:7],
    host,
  ]
  assert foreign_strings("runs/home/x, https://a.b/opt/c") == []
