"""Which files make up the project; shared by the tests of its structure."""

import pathlib
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Left by tools and runs, never part of the project.
IGNORED = (
  ".git",
  ".venv*",
  "venv",
  ".*cache",
  ".hypothesis",
  ".ipynb_checkpoints",
  ".idea",
  ".vscode",
  "__pycache__",
  "*.egg-info",
  "build",
  "dist",
  "htmlcov",
  "runs",
)


def files(root: pathlib.Path, pattern: str = "*") -> Iterator[pathlib.Path]:
  """Yields the project's files below root whose name matches pattern."""
  for path in sorted(root.iterdir()):
    if any(path.match(name) for name in IGNORED):
      continue
    if path.is_dir():
      yield from files(path, pattern)
    elif path.match(pattern):
      yield path
