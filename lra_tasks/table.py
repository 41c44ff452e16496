"""Every attention on every task of the Long Range Arena: a table per task."""

import itertools
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

from command_line import record, script, tables
from lra_tasks import config as config_lib
from lra_tasks import effort, pictures, registry, task_table
from lra_tasks.config import NAMES
from nam_jax import training
from nam_jax.training.errors import UserError

TABLE = tables.Table(
  "train_lra.py",
  "runs/lra",
  NAMES,
  "attention",
  ("softmax", "linear", "nam", "nam_erase", "nam_decay", "nam_full", "lru"),
  (),  # those that have data
  lambda task, attention: f"configs/lra/{task}.py:{attention}",
  read_tasks=("text", "retrieval", "image", "pathfinder"),
)
# How many rows of a task get further seeds.
_BEST = 2
# A pace is measured for this share of the run's time, and at least so long.
_TIMED_SHARE, _LEAST_SECONDS = 0.02, 30.0
# Options that are part of the recorded command.
_RECORDED = (
  *("tasks", "attentions", "preset", "minutes", "steps", "seeds"),
  *("best_seeds", "jobs"),
)


def main(argv: Sequence[str], usage: str = __doc__) -> int:
  """Runs what is missing and prints the tables; returns 1 on failure."""
  parser = tables.make_parser(TABLE, usage)
  add = parser.add_argument
  add("--minutes", type=float, help="of training for every run")
  add("--steps", type=int, help="updates of every run")
  add(
    "--best_seeds",
    type=tables.numbers,
    help=f"further seeds for the {_BEST} rows that are best in validation",
  )
  add("--pictures", type=Path, help="folder to draw lra_TASK.png in")
  add("--json", type=record.table_file, help="file of tables to add to")
  options = tables.parse(TABLE, parser, argv)
  command = _command(parser, options)
  try:
    _check(options)
    options.tasks = options.tasks or _default_tasks(options)
    failed = 0 if options.show else _train(options)
    for task in options.tasks:
      _show(options, task, command)
  except (UserError, OSError) as error:
    parser.error(str(error))
  return int(failed > 0)


def _check(options):
  if options.minutes is not None and options.steps is not None:
    raise UserError("give --minutes or --steps, not both")
  for name in ("minutes", "steps"):
    value = getattr(options, name)
    if value is None:
      continue
    if value <= 0:
      raise UserError(f"--{name}={value} must be positive")
    if any(word.startswith("--config.num_steps") for word in options.extra):
      raise UserError(f"--{name} sets num_steps; leave --config.num_steps out")


def _command(parser, options):
  """The command that repeats the runs, wherever the data is."""
  command = record.command("python lra_table.py", parser, options, _RECORDED)
  return command + " --data_dir=DIR" * bool(options.data_dir)


def _default_tasks(options):
  """The tasks that have results or, if runs are to be made, data."""
  found = []
  for task in NAMES["tasks"]:
    if options.show:
      if any(_results(options, task, row) for row in options.rows):
        found.append(task)
      continue
    try:
      with script.user_errors():
        kwargs = _config(options, task, options.rows[0]).task_kwargs
        folder = options.data_dir if task in TABLE.read_tasks else None
        registry.make_task(task, folder, **kwargs)
      found.append(task)
    except UserError as error:
      print(f"{task} is left out: {error}", flush=True)
  if not found:
    raise UserError(f"{options.folder} holds none of these runs")
  return found


def _train(options):
  """Makes the runs that are missing; returns how many failed."""
  cells, failed = [*itertools.product(options.tasks, options.rows)], 0
  if options.minutes:
    paces = [_pace_run(options, *cell) for cell in cells]
    failed = tables.complete(TABLE, paces, options.jobs)
  flags = {}
  for cell in cells:
    try:
      flags[cell] = _effort_flags(options, *cell)
    except UserError as error:
      failed += 1
      print(f"{'-'.join(cell)} is left out: {error}", flush=True)
  runs = [
    _run(options, *cell, seed, more)
    for seed, (cell, more) in itertools.product(options.seeds, flags.items())
  ]
  failed += tables.complete(TABLE, runs, options.jobs)
  runs = [
    _run(options, task, row, seed, flags[task, row])
    for seed, task in itertools.product(_more_seeds(options), options.tasks)
    for row in _best(options, task)
    if (task, row) in flags
  ]
  return failed + tables.complete(TABLE, runs, options.jobs)


def _effort(options):
  """What names the effort in the folder of a run."""
  if options.minutes:
    return f"{options.minutes:g}min"
  return f"{options.steps}steps" if options.steps else ""


def _run(options, task, row, seed, more=()):
  return tables.make_run(
    TABLE, options, task, row, seed, _effort(options), more
  )


def _pace_run(options, task, row):
  """Measures the pace of a cell's runs, which all have the same."""
  run = _run(options, task, row, options.seeds[0])
  workdir = run.workdir.with_name(run.workdir.name.rpartition("-")[0] + "-pace")
  seconds = max(_TIMED_SHARE * 60 * options.minutes, _LEAST_SECONDS)
  more = (f"--workdir={workdir}", f"--time_only={seconds:g}")
  return tables.Run(workdir, (*run.arguments, *more), "pace.json")


def _effort_flags(options, task, row):
  """The arguments that give a run the chosen number of updates."""
  steps = options.steps
  if options.minutes:
    found = _pace_run(options, task, row).results()
    if not found:
      raise UserError("its pace is not known")
    steps = effort.Pace(**found).steps_within(options.minutes)
  return effort.flags(_config(options, task, row), steps) if steps else ()


def _config(options, task, row):
  run = _run(options, task, row, options.seeds[0])
  config, _, _ = config_lib.read([TABLE.script, *run.arguments], "")
  return config


def _more_seeds(options):
  return [s for s in options.best_seeds or () if s not in options.seeds]


def _seeds(options):
  return [*options.seeds, *_more_seeds(options)]


def _results(options, task, row):
  """The results of the runs of a cell that are finished."""
  runs = (_run(options, task, row, seed) for seed in _seeds(options))
  return [results for run in runs if (results := run.results())]


def _best(options, task):
  """The rows with the best validation accuracy."""
  accuracy = {
    row: fmean(results.get("validation_accuracy") or 0 for results in found)
    for row in options.rows
    if (found := _results(options, task, row))
  }
  return sorted(accuracy, key=accuracy.__getitem__, reverse=True)[:_BEST]


def _show(options, task, command):
  """Prints a task's table; draws and records it if asked to."""
  found = {row: _results(options, task, row) for row in options.rows}
  print(_title(options, task))
  print(task_table.as_text(task, found, options.markdown), end="\n\n")
  if options.pictures:
    curves = {
      row: [
        pictures.curve(training.read_metrics(run.workdir))
        for seed in _seeds(options)
        if (run := _run(options, task, row, seed)).workdir.exists()
      ]
      for row in options.rows
    }
    pictures.save(options.pictures, task, curves)
  if options.json and any(found.values()):
    made = {"command": command, **record.when()}
    title = f"{_title(options, task)}."
    table = task_table.as_record(task, found, made, title)
    name = f"lra_{task}"
    table = task_table.grown(record.read_table(options.json, name), table)
    record.write_table(options.json, name, table)


def _title(options, task):
  share = "as many updates as the preset says"
  if options.minutes:
    share = f"{options.minutes:g} min of training for every run"
  elif options.steps:
    share = f"{options.steps:,} updates for every run"
  return f"{task}, preset {options.preset}, {share}"
