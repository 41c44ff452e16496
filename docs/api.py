"""Writes docs/api.md from the docstrings and signatures: python -m docs.api.

The sources are parsed, not imported, so the page is the same on every Python
and with every JAX. It has the names of `nam_jax.__all__` and the functions of
`nam_jax.viz`, in the words of the sources.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "api.md"
INTRODUCTION = """\
# API reference

Made from the docstrings by `make docs`; a test compares the two. Shapes are in
the letters of [concepts](concepts.md#shapes): `b s h k` is batch, sequence,
heads, width of a key. A `Probability` or a `Gate` is one number, or an array
with one for each memory, or for each token and head; a `Mask` is bool `[b s]`,
True at real tokens. `import nam_jax` is enough for all of it but the pictures,
which are in `nam_jax.viz` and need matplotlib.
"""
# Titles in the order of the page, and how the paths of their modules begin.
PARTS = {
  "The primitives": ("ops/memory", "ops/normalize"),
  "Whole sequences": ("ops/recurrent", "ops/chunked", "ops/outer", "ops/"),
  "Layers": ("layers/nam", "layers/lsam", "layers/"),
  "Baselines": ("baselines/",),
  "Streams": ("streaming",),
  "Pictures": ("viz",),
}
ORDER = [(title, start) for title in PARTS for start in PARTS[title]]
SECTION = re.compile(r"(Args|Attributes|Returns)( are those of .*)?:")
ITEM = re.compile(r"  (\*{0,2}\w+): (.*)", re.DOTALL)


class Source(NamedTuple):
  """A module: its text, its tree, and its public names on the page."""

  path: Path
  lines: list[str]
  tree: ast.Module
  names: list[str]


def read(path: Path, names: list[str]) -> Source:
  """Parses a module."""
  text = path.read_text(encoding="utf-8")
  return Source(path, text.splitlines(), ast.parse(text), names)


def sources() -> Iterator[Source]:
  """The modules that `nam_jax` takes its names from, and `nam_jax.viz`."""
  for node in read(ROOT / "nam_jax" / "__init__.py", []).tree.body:
    if isinstance(node, ast.ImportFrom) and node.module != "nam_jax.version":
      path = ROOT / (node.module.replace(".", "/") + ".py")
      yield read(path, [alias.name for alias in node.names])
  viz = read(ROOT / "nam_jax" / "viz.py", [])
  functions = (n for n in viz.tree.body if isinstance(n, ast.FunctionDef))
  yield viz._replace(names=[n.name for n in functions if n.name[0] != "_"])


def definitions(source: Source) -> dict[str, ast.stmt]:
  """What the module defines at its top, by name."""
  found = {}
  for node in source.tree.body:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
      found[node.name] = node
    elif isinstance(node, ast.Assign):
      targets = (t for t in node.targets if isinstance(t, ast.Name))
      found |= {target.id: node for target in targets}
  return found


def header(source: Source, node: ast.FunctionDef) -> str:
  """The signature, as it stands in the source."""
  lines = source.lines[node.lineno - 1 : node.body[0].lineno - 1]
  return textwrap.dedent("\n".join(lines)).rstrip().removesuffix(":")


def fields(source: Source, node: ast.ClassDef) -> str:
  """The first line of a class and its fields, as they stand in the source."""
  lines = [source.lines[node.lineno - 1]]
  for child in node.body:
    if isinstance(child, ast.AnnAssign):
      lines += source.lines[child.lineno - 1 : child.end_lineno]
  return "\n".join(lines)


def methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
  """What a user calls."""
  for child in node.body:
    if not isinstance(child, ast.FunctionDef) or not ast.get_docstring(child):
      continue
    if child.name[0] != "_" or child.name == "__call__":
      yield child


def fenced(text: str) -> str:
  """Text that Markdown leaves as it is."""
  return f"```text\n{text}\n```"


def prose(docstring: str) -> str:
  """A docstring as Markdown: sections become lists, indented text stays."""
  parts, block = [], []
  for paragraph in docstring.split("\n\n"):
    lines = paragraph.splitlines()
    if all(line.startswith("  ") for line in lines):
      block.append(textwrap.dedent(paragraph))
      continue
    parts += [fenced("\n\n".join(block))] if block else []
    block = []
    title = " ".join(line for line in lines if line[0] != " ")
    if SECTION.fullmatch(title):
      body = "\n".join(line for line in lines if line[0] == " ")
      paragraph = _section(title, body)
    parts.append(paragraph)
  return "\n\n".join(parts + ([fenced("\n\n".join(block))] if block else []))


def _section(title: str, body: str) -> str:
  items = re.split(r"\n(?=  \S)", body)
  matches = [ITEM.fullmatch(item) for item in items]
  if title.startswith("Returns") or not all(matches):
    return f"{title}\n\n{textwrap.dedent(body)}"
  rows = [f"- `{m[1]}`: {' '.join(m[2].split())}" for m in matches]
  return f"{title}\n\n" + "\n".join(rows)


def entry(source: Source, name: str) -> str:
  """A name with its signature, its words, and the methods of a class."""
  node = definitions(source)[name]
  parts = [f"### `{name}`"]
  if isinstance(node, ast.FunctionDef):
    parts += [fenced(header(source, node)), prose(ast.get_docstring(node))]
  elif isinstance(node, ast.ClassDef):
    parts += [fenced(fields(source, node)), prose(ast.get_docstring(node))]
    for method in methods(node):
      parts.append(f"**`{name}.{method.name}`**")
      parts.append(fenced(header(source, method)))
      parts.append(prose(ast.get_docstring(method)))
  else:
    lines = source.lines[node.lineno - 1 : node.end_lineno]
    parts.append(fenced("\n".join(lines)))
  return "\n\n".join(parts)


def summary(source: Source, name: str) -> str:
  """The name's line in the table of contents."""
  node = definitions(source)[name]
  if isinstance(node, ast.FunctionDef | ast.ClassDef):
    words = ast.get_docstring(node).splitlines()[0]
  elif isinstance(node.value, ast.Call):
    words = f"`{node.value.func.id}(...)`"
  else:
    words = f"`{source.lines[node.lineno - 1].partition(' = ')[2]}`"
  words = words.replace("|", "\\|")
  return f"| [`{name}`](#{name.lower()}) | {words} |"


def place(source: Source) -> tuple[int, str]:
  """Where the module stands on the page; every module has a place."""
  file = source.path.relative_to(ROOT / "nam_jax").as_posix()
  starts = [i for i, (_, start) in enumerate(ORDER) if file.startswith(start)]
  return starts[0], file


def page() -> str:
  """The whole page."""
  contents, chapters, last = ["| name | what it is |", "|---|---|"], [], None
  for source in sorted(sources(), key=place):
    title = ORDER[place(source)[0]][0]
    chapters += [f"## {title}"] if title != last else []
    last = title
    file = source.path.relative_to(ROOT).as_posix()
    chapters.append(f"From [{file}](../{file}).")
    chapters.append(prose(ast.get_docstring(source.tree)))
    chapters += [entry(source, name) for name in source.names]
    contents += [summary(source, name) for name in source.names]
  parts = [INTRODUCTION.rstrip(), "\n".join(contents), *chapters]
  return "\n\n".join(parts) + "\n"


def main() -> None:
  """Writes the page."""
  PAGE.write_text(page(), encoding="utf-8")
  print(f"written to {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
  main()
