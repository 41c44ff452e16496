"""Writes the tables of README.md and docs/ from docs/results.json.

  python -m docs.tables

A page marks the place of a table: <!-- results: NAME --> ... <!-- end -->. In
results.json a table has its `columns`, its `rows`, and for all of them or row
by row: the command, seeds, machine, date, commit (the one that recorded the
number), and what differs from the work it is compared with. A cell may cite
the paper, {paper.EXPERIMENT.KEY.KEY}, or another cell, {TABLE.ROW.COLUMN}.
With `paper` set, the paper's number follows each of ours in brackets.
"""

import importlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PROVENANCE = ("command", "seeds", "machine", "date", "commit", "differs")

_BLOCK = re.compile(r"(<!-- results: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_CITED = re.compile(r"\{([^{}]+)\}")
_TABLES_OF_PAPER = {
  "algorithmic": "ACCURACY",
  "lra_tasks": "RESULTS",
  "fewshot": "ACCURACY",
}


def load() -> dict[str, dict[str, Any]]:
  """The tables of results.json, by name."""
  return json.loads((ROOT / "docs" / "results.json").read_text())


def provenance(
  table: Mapping[str, Any], row: Mapping[str, str]
) -> dict[str, str]:
  """How the numbers of a row were made; what is missing raises KeyError."""
  return {key: row[key] if key in row else table[key] for key in PROVENANCE}


def cited(tables: Mapping[str, Any], text: str) -> str:
  """The text with every {citation} replaced by its number."""
  return _CITED.sub(lambda match: _find(tables, match[1].split(".")), text)


def as_markdown(tables: Mapping[str, Any], name: str) -> str:
  """A table, and below it where its numbers come from."""
  table = tables[name]
  columns = table["columns"]
  lines = [columns, ["---"] * len(columns)]
  for row in table["rows"]:
    row = {"seeds": table["seeds"], **row}
    first, *others = (cited(tables, row[column]) for column in columns)
    if paper := table.get("paper"):
      others = [
        cell + _beside(paper, first, column)
        for column, cell in zip(columns[1:], others, strict=True)
      ]
    lines.append([first, *others])
  rows = [f"| {' | '.join(line)} |" for line in lines]
  return "\n".join([*rows, "", _footnote(table)])


def render(text: str, tables: Mapping[str, Any]) -> str:
  """The page with all of its tables as the results say."""
  return _BLOCK.sub(
    lambda m: f"{m[1]}{as_markdown(tables, m[2])}\n{m[3]}", text
  )


def _footnote(table):
  origin = "{machine}; {date}, {commit}. {differs}"
  if "seeds" not in table["columns"] and table["seeds"] != "none":
    origin = f"seed{'s' * (len(table['seeds']) > 1)} {{seeds}}; {origin}"
  text = origin.format(**table)
  return f"*{text[0].upper()}{text[1:]}*"


def _find(tables, path):
  source, *keys = path
  if source == "paper":
    experiment, *keys = keys
    return _papers(experiment, keys)
  row_key, column = keys
  (row,) = [
    row
    for row in tables[source]["rows"]
    if row[tables[source]["columns"][0]] == row_key
  ]
  return cited(tables, row[column])


def _papers(experiment, keys) -> str:
  """A number of the paper; several of them have slashes between them."""
  module = importlib.import_module(f"{experiment}.paper")
  found = getattr(module, _TABLES_OF_PAPER[experiment])
  for key in keys:
    found = found[int(key) if key.isdecimal() else key]
  if experiment == "algorithmic":
    return "/".join("100" if x == 100 else f"{x:.1f}" for x in found)
  if experiment == "fewshot":
    return f"{found:.2f}"
  accuracy, _ = found
  return f"{accuracy:g}"


def _beside(experiment, row, column) -> str:
  try:
    text = _papers(experiment, [row, column])
  except KeyError:
    return ""
  if experiment == "lra_tasks":
    module = importlib.import_module("lra_tasks.paper")
    _, speed = module.RESULTS[row][column]
    text += "" if speed == 1 else f", {speed:g}x"
  return f" ({text})"


def main() -> None:
  """Writes every page whose tables differ from the results."""
  tables = load()
  for page in PAGES:
    text = page.read_text(encoding="utf-8")
    if (new := render(text, tables)) != text:
      page.write_text(new, encoding="utf-8")
      print(f"written: {page.relative_to(ROOT)}")


if __name__ == "__main__":
  main()
