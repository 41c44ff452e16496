"""Figures for docs/results.json."""

import argparse
import datetime
import json
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
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


def command(
  program: str,
  parser: argparse.ArgumentParser,
  options: argparse.Namespace,
  names: Iterable[str],
) -> str:
  """The command that repeats the runs of a table.

  Args:
    program: what is run.
    parser: knows which options have their defaults.
    options: from `tables.parse`.
    names: the options that matter.
  """
  words = [program]
  for name in names:
    value = getattr(options, name)
    if value != parser.get_default(name):
      is_list = isinstance(value, list)
      text = ",".join(map(str, value)) if is_list else str(value)
      words.append(f"--{name}={text}")
  return " ".join([*words, *options.extra])


def machines(runs: Iterable[Mapping[str, Any]]) -> str:
  """Where runs were made, from the content of their results.json."""
  return "; ".join(dict.fromkeys(map(_machine, runs)))


def _machine(results):
  about = results.get("machine", {"device": "unknown device", "cores": 0})
  cores = f"{about['cores']} core{'s' * (about['cores'] > 1)}"
  return f"{about['device']}, {cores}, JAX {results['versions']['jax']}"


def table_file(text: str) -> Path:
  """The type of an option: a file of tables, or one that can be made."""
  file = Path(text)
  try:
    _tables(file)
  except (OSError, ValueError, RecursionError) as error:
    raise argparse.ArgumentTypeError(
      f"{text!r:.200} is not a file of tables like docs/results.json"
    ) from error
  if not file.parent.is_dir():
    raise argparse.ArgumentTypeError(f"{text!r:.200}: there is no such folder")
  return file


def read_table(file: Path, name: str) -> dict[str, Any] | None:
  """A table in such a file, if it is there."""
  return _tables(file).get(name)


def write_table(file: Path, name: str, table: Mapping[str, Any]) -> None:
  """Replaces a table in a file like docs/results.json, which may be new.

  The file changes all at once: nobody reads half of it, and a process that is
  stopped while it writes loses nothing.
  """
  written = {**_tables(file), name: table}

  def text(value):
    return json.dumps(value, ensure_ascii=False)

  def block(opening, parts, closing, indent):
    lines = ",\n".join(" " * (indent + 2) + part for part in parts)
    return f"{opening}\n{lines}\n{' ' * indent}{closing}"

  def field(key, value):
    if key in ("rows", "runs"):
      return f"{text(key)}: {block('[', map(text, value), ']', 4)}"
    return f"{text(key)}: {text(value)}"

  blocks = [
    f"{text(key)}: {block('{', [field(*f) for f in table.items()], '}', 2)}"
    for key, table in written.items()
  ]
  with tempfile.TemporaryDirectory(dir=file.parent) as folder:
    whole = Path(folder) / file.name
    whole.write_text(block("{", blocks, "}", 0) + "\n", encoding="utf-8")
    whole.replace(file)


def _tables(file):
  """The tables of a file, by name; none if there is no file."""
  if not file.exists():
    return {}
  found = json.loads(file.read_text(encoding="utf-8"))
  if not isinstance(found, dict):
    raise ValueError(f"{file} holds no tables")
  return found
