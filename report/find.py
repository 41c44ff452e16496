"""Finds and reads the runs below a folder; what is broken is only named."""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import algorithmic.section
import benchmarks.section
import fewshot.section
import lra_tasks.section
from report import other
from report.run import FOREIGN, Curve, Run, is_number

# In the order of the page.
KINDS = (
  algorithmic.section.KIND,
  lra_tasks.section.KIND,
  fewshot.section.KIND,
  benchmarks.section.KIND,
  other.KIND,
)

_PNG = b"\x89PNG\r\n\x1a\n"


class Found(NamedTuple):
  """Runs, and a line for each file that could not be used."""

  runs: list[Run]
  problems: list[str]


def find(root: Path) -> Found:
  """Reads every results.json and metrics.jsonl below root."""
  problems, configs = [], {}
  curves: dict[Path, dict[str, Curve]] = {}
  for folder in _folders(root, problems):
    config = _read_object(folder / "config.json", root, problems) or {}
    rows = _read_rows(folder, root, problems)
    # A stage of few-shot learning is a folder inside its run's.
    is_stage = "settings" in config and folder != root
    owner, stage = (folder.parent, folder.name) if is_stage else (folder, "")
    if not is_stage:
      configs[folder] = config
    found = curves.setdefault(owner, {})
    if rows is not None:
      found[stage] = Curve(config, rows)
  runs = []
  for folder in sorted(curves):
    anchor, config = f"run-{len(runs) + 1}", configs.get(folder, {})
    run = _make_run(folder, config, curves[folder], anchor, root, problems)
    if run:
      runs.append(run)
  return Found(runs, problems)


def _folders(root, problems):
  def complain(error):
    problems.append(f"{error.filename}: {error.strerror}")

  for folder, inner, files in os.walk(root, onerror=complain):
    inner.sort()
    if {"results.json", "metrics.jsonl"}.intersection(files):
      yield Path(folder)


def _make_run(folder, config, curves, anchor, root, problems):
  results = _read_object(folder / "results.json", root, problems)
  kind, facts = _kind(results or {}, config, curves), None
  if results is not None:
    file = _name(folder / "results.json", root)
    try:
      facts = kind.read(results)
    except FOREIGN as error:
      what = " ".join(f"{type(error).__name__} {error}".split())[:100]
      problems.append(f"{file}: not the results of a known kind ({what})")
  if facts is None and not curves:
    return None
  about = results or {}
  versions = about.get("versions", about.get("machine"))
  return Run(
    _name(folder, root),
    folder,
    kind,
    config,
    (folder / "results.json").exists(),
    facts,
    versions if isinstance(versions, dict) else {},
    curves,
    _read_pictures(folder, root, problems),
    anchor,
  )


def _kind(results, config, curves):
  for kind in KINDS[:-1]:
    if kind.results_keys <= results.keys():
      return kind
  if set(curves) - {""}:
    return section.KIND
  for kind in KINDS[:-1]:
    if kind.config_keys and kind.config_keys <= config.keys():
      return kind
  return other.KIND


def _read_object(path, root, problems) -> dict[str, Any] | None:
  """The object in a JSON file; None if there is no file, or no object."""
  try:
    content = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(content, dict):
      return content
    why = "it holds no JSON object"
  except FileNotFoundError:
    return None
  except OSError as error:
    why = error.strerror
  except (ValueError, RecursionError):
    why = "it is not valid JSON"
  problems.append(f"{_name(path, root)}: {why}")
  return None


def _read_rows(folder, root, problems) -> list[dict[str, Any]] | None:
  """The rows of metrics.jsonl that have a step and a kind; None: no file."""
  path = folder / "metrics.jsonl"
  if not path.exists():
    return None
  try:
    lines = path.read_text(encoding="utf-8").splitlines()
  except (OSError, ValueError):
    problems.append(f"{_name(path, root)}: it cannot be read as text")
    return []
  rows = [row for line in lines if (row := _row(line))]
  bad = len(lines) - len(rows)
  # One line may be cut off while a run is going on.
  if bad > 1 or (bad and not rows):
    why = f"{bad} of {len(lines)} lines hold no metrics"
    problems.append(f"{_name(path, root)}: {why}")
  return rows


def _row(line):
  """The metrics in a line; None if there are none."""
  try:
    row = json.loads(line)
  except (ValueError, RecursionError):
    return None
  whole = isinstance(row, dict) and "kind" in row and is_number(row, "step")
  return row if whole else None


def _read_pictures(folder, root, problems) -> dict[str, bytes]:
  pictures = {}
  for path in sorted(folder.glob("*.png")):
    try:
      content = path.read_bytes()
    except OSError as error:
      problems.append(f"{_name(path, root)}: {error.strerror}")
      continue
    if content.startswith(_PNG):
      pictures[path.name] = content
    else:
      problems.append(f"{_name(path, root)}: it is no PNG picture")
  return pictures


def _name(path, root):
  """The path seen from root, whose own name stands for itself."""
  relative = path.relative_to(root).as_posix()
  return root.resolve().name if relative == "." else relative
