"""Finds and reads the runs in a folder; broken files are only reported."""

import importlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from report.run import FOREIGN, OTHER, Curve, Kind, Run, is_number

_CHECKOUT = Path(__file__).resolve().parents[1]

_PNG = b"\x89PNG\r\n\x1a\n"


class Found(NamedTuple):
  """Runs, and a line for each file that could not be used."""

  runs: list[Run]
  problems: list[str]


def kinds() -> list[Kind]:
  """The `KIND` of every folder's `section.py`, by title."""
  modules = (
    importlib.import_module(f"{path.parent.name}.section")
    for path in _CHECKOUT.glob("*/section.py")
  )
  return sorted((module.KIND for module in modules), key=lambda k: k.title)


def find(root: Path) -> Found:
  """Reads every results.json and metrics.jsonl below root."""
  problems, configs, known = [], {}, kinds()
  stage_kinds: dict[Path, Kind] = {}
  curves: dict[Path, dict[str, Curve]] = {}
  for folder in _folders(root, problems):
    config = _read_object(folder / "config.json", root, problems) or {}
    rows = _read_rows(folder, root, problems)
    # A stage is a folder inside its run's.
    stage_of = _first(known, "stage_keys", config) if folder != root else None
    owner, stage = (folder.parent, folder.name) if stage_of else (folder, "")
    if stage_of:
      stage_kinds[owner] = stage_of
    else:
      configs[folder] = config
    found = curves.setdefault(owner, {})
    if rows is not None:
      found[stage] = Curve(config, rows)
  runs = []
  for folder in sorted(curves):
    anchor, config = f"run-{len(runs) + 1}", configs.get(folder, {})
    results = _read_object(folder / "results.json", root, problems)
    kind = (
      _first(known, "results_keys", results or {})
      or stage_kinds.get(folder)
      or _first(known, "config_keys", config)
      or OTHER
    )
    run = _make_run(
      folder, kind, config, results, curves[folder], anchor, root, problems
    )
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


def _first(known, field, content):
  """The first kind whose keys, if it has any, are all in content."""
  for kind in known:
    if (keys := getattr(kind, field)) and keys <= content.keys():
      return kind
  return None


def _make_run(folder, kind, config, results, curves, anchor, root, problems):
  facts = None
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


def _read_object(path, root, problems) -> dict[str, Any] | None:
  """The object in a JSON file; None without a file or an object."""
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
  # One line may be incomplete while a run is in progress.
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
      problems.append(f"{_name(path, root)}: it is not a PNG picture")
  return pictures


def _name(path, root):
  """The path relative to root, or root's own name for root itself."""
  relative = path.relative_to(root).as_posix()
  return root.resolve().name if relative == "." else relative
