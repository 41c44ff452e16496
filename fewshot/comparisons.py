"""Tables from several runs: sessions, and the paper's claim."""

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from command_line import record, tables
from fewshot import paper, table
from nam_jax.training.errors import UserError

_HEADS = {
  "sessions": "cosine,cosine_tuned,nam,nam_projection",
  "claim": "attention,nam_attention",
}
# Data that have a preset for each experiment.
_DATA = {
  "sessions": ("mini_imagenet", "omniglot"),
  "claim": ("mini_imagenet", "omniglot", "glyphs"),
}
TABLE = tables.Table(
  "train_fewshot.py",
  "runs/fewshot",
  {"experiments": _HEADS, "tasks": _DATA["claim"], "presets": ("cpu",)},
  "experiment",
  tuple(_HEADS),
  _DATA["claim"],
  lambda task, row: f"configs/fewshot/{task}.py:{_HEADS[row]},{row}",
  read_tasks=("mini_imagenet", "omniglot"),
)
_RECORDED = ("tasks", "experiments", "seeds")


def main(argv: Sequence[str], usage: str = __doc__) -> int:
  """Runs what is missing and prints the tables; returns 1 on failure."""
  parser = tables.make_parser(TABLE, usage)
  parser.add_argument(
    "--json", type=record.table_file, help="file of tables to add to"
  )
  options = tables.parse(TABLE, parser, argv)
  try:
    runs = {
      (row, task): [
        tables.make_run(TABLE, options, task, row, seed)
        for seed in options.seeds
      ]
      for row in options.rows
      for task in options.tasks
      if task in _DATA[row]
    }
    flat = [run for found in runs.values() for run in found]
    failed = 0 if options.show else tables.complete(TABLE, flat, options.jobs)
    finished = {
      cell: [results for run in found if (results := run.results())]
      for cell, found in runs.items()
    }
    if options.show and not any(finished.values()):
      raise UserError(f"{options.folder} holds none of these runs")
    made = _made(parser, options, finished) if options.json else {}
    for name, (rows, differs) in _tables(options, finished).items():
      print(name, tables.as_text(rows, options.markdown), sep="\n", end="\n\n")
      if options.json:
        found = _as_record(rows, made, options.seeds, differs)
        record.write_table(options.json, name, found)
  except (UserError, OSError) as error:
    parser.error(str(error))
  return int(failed > 0)


def _made(parser, options, finished):
  """How the tables were made."""
  program = "python fewshot_table.py"
  command = record.command(program, parser, options, _RECORDED)
  runs = [results for found in finished.values() for results in found]
  return {
    "command": command + " --data_dir=DIR" * bool(options.data_dir),
    **record.when(),
    "machine": record.machines(runs),
  }


def _tables(options, finished):
  """Name -> rows with their header, and what to say below."""
  made = {}
  for (row, task), found in finished.items():
    if row == "sessions" and found:
      first = found[0]
      rows = table.session_rows(first["sessions"], first["data"])
      made[f"fewshot_sessions_{task}"] = (rows, _sessions_note(first))
  claimed = {
    task: found
    for (row, task), found in finished.items()
    if row == "claim" and found
  }
  if claimed:
    rows = [list(_CLAIM_HEADER)]
    rows += [_claim_row(task, found) for task, found in claimed.items()]
    made["fewshot_claim"] = (rows, _CLAIM_NOTE)
  return made


def _sessions_note(results: dict[str, Any]) -> str:
  found = results["sessions"]
  return (
    f"Accuracy in percent over all classes so far, {found['num_sessions']}"
    f" sessions of {found['num_way']} classes with {found['num_shot']} examples"
    f" each, mean of {found['num_rounds']} random orders; base and new: after"
    " the last session; differences from the tuned cosine classifier in the"
    f" same orders. Features of {results['backbone']}, trained in"
    f" {results['stage1']['seconds'] / 60:.0f} minutes."
    + " Published rows are of ResNets."
    * (results["data"] in paper.SESSIONS)
  )


_CLAIM_HEADER = ("data", "cosine", "NAM", "NAM - cosine", "of each seed")
_CLAIM_NOTE = (
  "Both in percent, 5 shots, 2,000 episodes of each seed. The attention"
  " generator is beneath both heads, which are selected by Both. Differences"
  " are paired, with 95% intervals over the episodes."
)


def _claim_row(task, found):
  """Means over the seeds, and the paired difference of each."""
  tested = [results["shots"]["5"] for results in found]
  means = [
    fmean(heads[label]["accuracy"]["both"]["mean"] for heads in tested)
    for label in ("attention", "nam_attention")
  ]
  gains = [heads["nam_attention"]["difference"]["both"] for heads in tested]
  gain = {
    "mean": fmean(one["mean"] for one in gains),
    "ci95": math.hypot(*(one["ci95"] for one in gains)) / len(gains),
  }
  each = ", ".join(f"{100 * one['mean']:+.2f}" for one in gains)
  percent = [f"{100 * mean:.2f}" for mean in means]
  return [task, *percent, table.percent(gain, "+.2f"), each]


def _as_record(rows, made, seeds, differs):
  header, *rows = rows
  return {
    "columns": header,
    "rows": [dict(zip(header, row, strict=True)) for row in rows],
    **made,
    "seeds": ", ".join(map(str, seeds)),
    "differs": differs,
  }
