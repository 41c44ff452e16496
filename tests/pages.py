"""README.md and docs/*.md: their blocks, commands, links and headings."""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from tests import project_tree

FILES = [
  project_tree.ROOT / "README.md",
  *sorted((project_tree.ROOT / "docs").glob("*.md")),
]
PAGES = {
  path.relative_to(project_tree.ROOT).as_posix(): path.read_text()
  for path in FILES
}
LANGUAGES = ("python", "sh", "text", "bibtex")

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
VARIABLE = re.compile(r"[A-Z_]+=\S*")


class Block(NamedTuple):
  """A fenced block or a span of a page; line is where it starts."""

  language: str
  line: int
  code: str


class Command(NamedTuple):
  """A shell command: the variables it sets, its words, whether `&` follows."""

  variables: dict[str, str]
  words: tuple[str, ...]
  in_background: bool = False


def blocks(text: str) -> list[Block]:
  """The fenced blocks, and the spans that are commands of python or make."""
  found = [
    Block(m[1], text.count("\n", 0, m.start(2)) + 1, m[2])
    for m in FENCE.finditer(text)
  ]
  plain = FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)
  found += [
    Block("sh", plain.count("\n", 0, m.start()) + 1, m[1])
    for m in SPAN.finditer(plain)
    if m[1].startswith(("python ", "make "))
  ]
  return sorted(found, key=lambda block: block.line)


def commands(code: str) -> Iterator[Command]:
  """The commands in a block; exported variables hold for all later ones."""
  exported = {}
  for line in code.replace("\\\n", " ").splitlines():
    words = shlex.split(line, comments=True)
    in_background = words[-1:] == ["&"]
    words = words[:-1] if in_background else words
    is_export = words[:1] == ["export"]
    words = words[1:] if is_export else words
    variables = {}
    while words and VARIABLE.fullmatch(words[0]):
      name, _, variables[name] = words.pop(0).partition("=")
    if is_export:
      exported |= variables
    if words:
      yield Command(exported | variables, tuple(words), in_background)


def links(text: str) -> list[str]:
  """The targets of links and images."""
  return LINK.findall(SPAN.sub("", FENCE.sub("", text)))


def anchors(text: str) -> set[str]:
  """What a link's #... can name: the headings as GitHub writes them."""
  titles = HEADING.findall(FENCE.sub("", text))
  return {
    re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles
  }
