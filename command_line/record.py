"""Figures for docs/results.json."""

import datetime
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]


def when() -> dict[str, str]:
  """Today, and the commit that is measured."""
  commit = subprocess.run(
    ["git", "rev-parse", "--short", "HEAD"],
    cwd=_ROOT,
    capture_output=True,
    text=True,
  )
  return {
    "date": datetime.date.today().isoformat(),
    "commit": commit.stdout.strip() or "unknown",
  }


def read_table(file: Path, name: str) -> dict[str, Any] | None:
  """A table in such a file, if it is there."""
  return json.loads(file.read_text(encoding="utf-8")).get(name)


def write_table(file: Path, name: str, table: Mapping[str, Any]) -> None:
  """Replaces a table in a file like docs/results.json."""
  written = {**json.loads(file.read_text(encoding="utf-8")), name: table}

  def text(value):
    return json.dumps(value, ensure_ascii=False)

  def block(opening, parts, closing, indent):
    lines = ",\n".join(" " * (indent + 2) + part for part in parts)
    return f"{opening}\n{lines}\n{' ' * indent}{closing}"

  def field(key, value):
    if key == "rows":
      return f'"rows": {block("[", map(text, value), "]", 4)}'
    return f"{text(key)}: {text(value)}"

  blocks = [
    f"{text(key)}: {block('{', [field(*f) for f in table.items()], '}', 2)}"
    for key, table in written.items()
  ]
  file.write_text(block("{", blocks, "}", 0) + "\n", encoding="utf-8")
