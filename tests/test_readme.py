"""The README tells the truth: its examples run, its commands exist."""

import re
import shlex

import pytest

from tests import project_tree

README = (project_tree.ROOT / "README.md").read_text()
MAKEFILE = (project_tree.ROOT / "Makefile").read_text()

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")


def python_blocks() -> list:
  """Each python block, padded so that errors point at the README's line."""
  blocks = []
  for match in FENCE.finditer(README):
    if match[1] == "python":
      line = README.count("\n", 0, match.start(2))
      blocks.append(pytest.param("\n" * line + match[2], id=f"line{line + 1}"))
  return blocks


def make_targets() -> set[str]:
  """The targets of every make command in the README's code."""
  code = [match[2] for match in FENCE.finditer(README)]
  code += SPAN.findall(FENCE.sub("", README))
  words = [
    word
    for line in "\n".join(code).splitlines()
    if line.startswith("make ")
    for word in shlex.split(line, comments=True)[1:]
  ]
  return {word for word in words if "=" not in word and word[0] != "-"}


@pytest.mark.parametrize("block", python_blocks())
def test_example_runs(block):
  exec(compile(block, "README.md", "exec"), {"__name__": "readme"})


def test_make_commands_exist():
  targets = set(re.findall(r"^([a-z]+):.*##", MAKEFILE, re.MULTILINE))
  assert {"train", "test"} <= make_targets() <= targets
