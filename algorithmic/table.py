"""The tables of results, ours next to published ones; see `suites`."""

import argparse
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from algorithmic import outcomes, pictures
from algorithmic.config import NAMES
from algorithmic.outcomes import Cell, Outcome
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
  add(
    "--json",
    type=record.table_file,
    help="file of tables to add to, after every run; what it has is not run"
    " again",
  )
  add("--picture", type=Path, help="file to draw the curves of recall in")
  options = tables.parse(table, parser, argv)
  if options.picture and options.suite != "recall":
    parser.error("--picture draws recall; add --suite=recall")
  before = _before(parser, options)
  runs = {
    (cell := Cell(row, task, seed)): _run(table, suite, options, cell)
    for seed, task, row in itertools.product(
      options.seeds, options.tasks, options.rows
    )
  }
  missing = {cell: run for cell, run in runs.items() if cell not in before}

  def gather():
    """All runs that are known by now, which it records."""
    new = {
      cell: results
      for cell, run in missing.items()
      if (results := run.results())
    }
    # Another process may have recorded more in the meantime.
    found = _before(parser, options) | outcomes.of(suite, new)
    if options.json and found:
      _record(suite, options, found, parser)
    return found

  failed = 0
  if not options.show:
    failed = tables.complete(table, missing.values(), options.jobs, gather)
  found = gather()
  lines = _lines(suite, found, options.rows, options.tasks, options.seeds)
  print(tables.as_text(lines, options.markdown))
  if options.picture:
    pictures.save_recall(options.picture, _values(found, options))
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


def _run(table, suite, options, cell):
  flags = (*suite.flags(cell.task), *_row(suite, cell.row).flags)
  return tables.make_run(
    table, options, cell.task, cell.row, cell.seed, more=flags
  )


def _recorded_name(options):
  """The name of the table in a file like docs/results.json."""
  first, *_ = NAMES["presets"]
  preset = "" if options.preset == first else f"_{options.preset}"
  return f"algorithmic_{options.suite}{preset}"


def _before(parser, options) -> dict[Cell, Outcome]:
  """The outcomes that --json has, of runs with the same settings."""
  if not options.json:
    return {}
  name = _recorded_name(options)
  table = record.read_table(options.json, name)
  settings = table.get("settings", []) if table else options.extra
  if settings != options.extra:
    was = " ".join(settings) or "none"
    parser.error(
      f"{options.json} has {name} with other settings ({was}); choose another"
      " file for --json"
    )
  return outcomes.recorded(table)


def _values(found: Mapping[Cell, Outcome], options):
  """(row, task) -> the values of all seeds."""
  return {
    (row, task): [run.value for run in _runs(found, row, task, options.seeds)]
    for row, task in itertools.product(options.rows, options.tasks)
  }


def _runs(found, row, task, seeds):
  """The outcomes of the seeds that are known."""
  cells = [Cell(row, task, seed) for seed in seeds]
  return [found[cell] for cell in cells if cell in found]


def _lines(suite, found, rows, tasks, seeds):
  """The table with its header; a suite of many tasks has a line for each."""
  lines = [["model", *tasks]]
  lines += [
    [row, *(_cell(suite, found, row, task, seeds) for task in tasks)]
    for row in rows
  ]
  for row, numbers in suite.published.items():
    lines.append([row, *(numbers.get(task, "") for task in tasks)])
  if len(suite.tasks) < len(suite.rows) + len(suite.published):
    return lines
  (_, *names), *columns = zip(*lines, strict=True)
  return [["task", *names], *map(list, columns)]


def _cell(suite, found, row, task, seeds):
  """Our number, the mean effort of a run, how many seeds, the paper's."""
  text = "-"
  if runs := _runs(found, row, task, seeds):
    number = suite.number(task, [run.value for run in runs])
    epochs = fmean(run.epochs for run in runs)
    minutes = fmean(run.minutes for run in runs)
    text = f"{number} [{epochs:.3g} ep, {minutes:.3g} min]"
    text += f" x{len(runs)}" * (len(seeds) > 1)
  papers = suite.beside(task, row)
  return f"{text} ({papers})" if papers else text


def _record(suite, options, found, parser):
  """Records all runs that are known, and their table."""
  rows = _in_order(suite.rows, [cell.row for cell in found])
  tasks = _in_order(suite.tasks, [cell.task for cell in found])
  seeds = sorted({cell.seed for cell in found})
  whole = argparse.Namespace(**{**vars(options), "seeds": seeds})
  for name, used in (("tasks", tasks), ("models", rows)):
    default = parser.get_default(name)
    setattr(whole, name, default if {*used} <= {*default} else used)
  header, *lines = _lines(suite, found, rows, tasks, seeds)
  title = suite.title[0].upper() + suite.title[1:]
  written = {
    "columns": header,
    "command": record.command(f"python {_SCRIPT}", parser, whole, _RECORDED),
    "settings": options.extra,
    "seeds": ", ".join(map(str, seeds)),
    **outcomes.made(found.values()),
    "differs": " ".join([f"{title}.", *suite.notes]),
    "rows": [dict(zip(header, line, strict=True)) for line in lines],
    "runs": outcomes.as_record(found),
  }
  record.write_table(options.json, _recorded_name(options), written)


def _in_order(known, found):
  """What was found, in the order of the suite, others last."""
  return [name for name in dict.fromkeys([*known, *found]) if name in found]
