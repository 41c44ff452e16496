"""Finds and reads the runs in a folder; broken files are only reported."""

import importlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from nam_jax.training import regular_files
from report.run import FOREIGN, OTHER, Curve, Kind, Run, is_number

_CHECKOUT = Path(__file__).resolve().parents[1]

_PNG = b"\x89PNG\r\n\x1a\n"
_MOST_BYTES, _MOST_LEVELS = 1 << 28, 50


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
    os.path.isfile(folder / "results.json"),
    facts,
    versions if isinstance(versions, dict) else {},
    curves,
    _read_pictures(folder, root, problems),
    anchor,
  )


def _read_object(path, root, problems) -> dict[str, Any] | None:
  """The object in a JSON file; None without a file or an object."""
  content = _read(path, root, problems)
  if content is None:
    return None
  try:
    found = json.loads(content.decode())
    if isinstance(found, dict) and _is_shallow(found):
      return found
    why = "it holds no JSON object that can be shown"
  except (ValueError, RecursionError):
    why = "it is not valid JSON"
  problems.append(f"{_name(path, root)}: {why}")
  return None


def _is_shallow(value) -> bool:
  """Whether it can be written again, which takes a call for each level."""
  level = [value]
  for _ in range(_MOST_LEVELS):
    level = [
      inner
      for outer in level
      if isinstance(outer, dict | list)
      for inner in (outer.values() if isinstance(outer, dict) else outer)
    ]
  return not level


def _read(path, root, problems) -> bytes | None:
  """The content of a file; None if there is none that can be read."""
  try:
    with regular_files.open_file(path) as file:
      content = file.read(_MOST_BYTES + 1)
    if len(content) <= _MOST_BYTES:
      return content
    why = f"it has more than {_MOST_BYTES:,} bytes"
  except OSError as error:
    if not os.path.lexists(path):
      return None
    why = error.strerror
  problems.append(f"{_name(path, root)}: {why}")
  return None


def _read_rows(folder, root, problems) -> list[dict[str, Any]] | None:
  """The rows of metrics.jsonl that have a step and a kind; None: no file."""
  path = folder / "metrics.jsonl"
  if not os.path.lexists(path):
    return None
  lines = (_read(path, root, problems) or b"").splitlines()
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
    row = json.loads(line.decode())
  except (ValueError, RecursionError):
    return None
  whole = isinstance(row, dict) and "kind" in row and is_number(row, "step")
  return row if whole else None


def _read_pictures(folder, root, problems) -> dict[str, bytes]:
  pictures = {}
  for path in sorted(folder.glob("*.png")):
    content = _read(path, root, problems)
    if content is None:
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
