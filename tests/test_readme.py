"""README and docs tell the truth: their examples run, their commands exist."""

import re
import shlex

import pytest

from tests import project_tree

PAGES = {
  path.name: path.read_text()
  for path in (
    project_tree.ROOT / "README.md",
    *sorted((project_tree.ROOT / "docs").glob("*.md")),
  )
}
MAKEFILE = (project_tree.ROOT / "Makefile").read_text()

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")


def python_blocks() -> list:
  """Each python block, padded so that errors point at the page's line."""
  blocks = []
  for name, text in PAGES.items():
    for match in FENCE.finditer(text):
      if match[1] == "python":
        line = text.count("\n", 0, match.start(2))
        block = "\n" * line + match[2]
        blocks.append(pytest.param(name, block, id=f"{name}:{line + 1}"))
  return blocks


def make_targets(text: str) -> set[str]:
  """The targets of every make command in a page's code."""
  code = [match[2] for match in FENCE.finditer(text)]
  code += SPAN.findall(FENCE.sub("", text))
  words = [
    word
    for line in "\n".join(code).splitlines()
    if line.startswith("make ")
    for word in shlex.split(line, comments=True)[1:]
  ]
  return {word for word in words if "=" not in word and word[0] != "-"}


@pytest.mark.parametrize(("name", "block"), python_blocks())
def test_example_runs(name, block):
  exec(compile(block, name, "exec"), {"__name__": "page"})


@pytest.mark.parametrize("name", PAGES)
def test_make_commands_exist(name):
  targets = set(re.findall(r"^([a-z]+):.*##", MAKEFILE, re.MULTILINE))
  assert make_targets(PAGES[name]) <= targets


def test_the_readme_names_the_commands_to_begin_with():
  assert {"train", "test"} <= make_targets(PAGES["README.md"])
