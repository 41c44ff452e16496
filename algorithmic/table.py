"""The tables of results, ours next to published ones; see `suites`."""

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from algorithmic import pictures
from algorithmic.config import NAMES
from algorithmic.suites import SUITES, Row
from command_line import record, tables

_SCRIPT = "algorithmic_table.py"
# Options that are part of the recorded command.
_RECORDED = ("suite", "tasks", "models", "preset", "seeds", "jobs")


def main(argv: Sequence[str], usage: str = __doc__) -> int:
  """Runs what is missing and prints the table; returns 1 on failure."""
  name = _suite(argv)
  suite, table = SUITES[name], _table(name)
  parser = tables.make_parser(table, usage)
  add = parser.add_argument
  add("--suite", choices=SUITES, default="paper", help="which table")
  add("--json", type=record.table_file, help="file of tables to add to")
  add("--picture", type=Path, help="file to draw the curves of recall in")
  options = tables.parse(table, parser, argv)
  if options.picture and options.suite != "recall":
    parser.error("--picture draws recall; add --suite=recall")
  runs = {
    (seed, task, row): _run(table, suite, options, task, row, seed)
    for seed, task, row in itertools.product(
      options.seeds, options.tasks, options.rows
    )
  }
  failed = 0
  if not options.show:
    failed = tables.complete(table, runs.values(), options.jobs)
  found = {
    (row, task): [runs[seed, task, row].results() for seed in options.seeds]
    for row, task in itertools.product(options.rows, options.tasks)
  }
  cells = {
    row: [_cell(suite, t, row, found[row, t]) for t in options.tasks]
    for row in options.rows
  }
  print(tables.as_text(_lines(suite, options, cells), options.markdown))
  if options.picture:
    pictures.save_recall(options.picture, _finished(found))
  if options.json and any(_finished(found).values()):
    command = record.command(f"python {_SCRIPT}", parser, options, _RECORDED)
    _record(suite, options, found, command)
  return int(failed > 0)


def _suite(argv):
  """The suite decides about the defaults of all other options."""
  parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
  parser.add_argument("--suite", default="paper")
  name = parser.parse_known_args(argv)[0].suite
  return name if name in SUITES else "paper"  # and an error follows


def _table(name):
  suite = SUITES[name]
  names = {
    "suites": SUITES,
    **NAMES,
    "tasks": tuple(dict.fromkeys([*suite.tasks, *NAMES["tasks"]])),
    "models": tuple(dict.fromkeys([*suite.rows, *NAMES["models"]])),
  }
  return tables.Table(
    "train_algorithmic.py",
    f"runs/{'table' if name == 'paper' else name}",
    names,
    "model",
    tuple(suite.rows),
    suite.tasks,
    lambda task, row: suite.config(task, _row(suite, row).model),
  )


def _row(suite, name):
  return suite.rows.get(name, Row(name))


def _run(table, suite, options, task, row, seed):
  flags = (*suite.flags(task), *_row(suite, row).flags)
  return tables.make_run(table, options, task, row, seed, more=flags)


def _finished(found):
  return {cell: [r for r in runs if r] for cell, runs in found.items()}


def _lines(suite, options, cells):
  """The table with its header; one with many tasks has a line for each."""
  lines = [["model", *options.tasks]]
  lines += [[row, *texts] for row, texts in cells.items()]
  for row, numbers in suite.published.items():
    lines.append([row, *(numbers.get(task, "") for task in options.tasks)])
  if len(options.tasks) < len(suite.rows) + len(suite.published):
    return lines
  (_, *names), *columns = zip(*lines, strict=True)
  return [["task", *names], *map(list, columns)]


def _cell(suite, task, row, found):
  """Ours, its effort, the paper's; `found` has None for unfinished runs."""
  finished = [results for results in found if results]
  text = _ours(suite, task, finished) if finished else "-"
  if finished and len(found) > 1:
    text += f" x{len(finished)}"
  papers = suite.beside(task, row)
  return f"{text} ({papers})" if papers else text


def _ours(suite, task, runs):
  """Our number, and the mean effort of a run."""
  epochs = fmean(run["epochs"] for run in runs)
  minutes = fmean(run["wall_seconds"] for run in runs) / 60
  return f"{suite.number(task, runs)} [{epochs:.3g} ep, {minutes:.3g} min]"


def _record(suite, options, found, command):
  """Adds the table to a file like docs/results.json."""
  finished = _finished(found)
  every = [results for runs in finished.values() for results in runs]
  cells = {}
  for row in options.rows:
    runs = {task: finished[row, task] for task in options.tasks}
    if any(runs.values()):
      cells[row] = [_ours(suite, t, r) if r else "-" for t, r in runs.items()]
  header, *lines = _lines(suite, options, cells)
  is_paper = options.suite == "paper"
  name = "algorithmic" if is_paper else f"algorithmic_{options.suite}"
  title = suite.title[0].upper() + suite.title[1:]
  written = {
    "columns": header,
    **({"paper": "algorithmic"} if is_paper else {}),
    "command": command,
    "seeds": ", ".join(map(str, sorted({r["seed"] for r in every}))),
    "machine": record.machines(every),
    **record.when(),
    "differs": " ".join([f"{title}.", *suite.notes]),
    "rows": [dict(zip(header, line, strict=True)) for line in lines],
  }
  record.write_table(options.json, name, written)
