"""The table of one task: a row for each attention, next to published numbers.

`found` has, for each attention, the content of results.json of every seed. Runs
of version 0.1 do not say which rows validated them, nor how much memory they
used.
"""

import textwrap
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from command_line import record, tables
from lra_tasks import paper, published

Found = Mapping[str, Sequence[dict[str, Any]]]

COLUMNS = (
  *("attention", "test accuracy", "last", "steps", "steps/s", "parameters"),
  *("memory", "minutes", "seeds", "paper"),
)
_NO_VALIDATION = (
  "No rows are held out for validation, so the test accuracy is that of the"
  " last state."
)


def as_text(task: str, found: Found, markdown: bool) -> str:
  """The table, and the published numbers below it."""
  rows = [
    [attention, *_cells(runs), _papers(task, attention)]
    for attention, runs in found.items()
  ]
  table = tables.as_text([COLUMNS, *rows], markdown)
  notes = [textwrap.fill(note, 80) for note in _notes(task, found)]
  return "\n\n".join([table, "\n".join(notes)])


def as_record(
  task: str, found: Found, made: Mapping[str, str], title: str
) -> dict[str, Any]:
  """The table as docs/results.json has it, without rows that were not run.

  Args:
    task: the name of the task.
    found: at least one run.
    made: command, date and commit.
    title: what is the same for all runs.
  """
  rows = []
  for attention, runs in found.items():
    known = task in paper.RESULTS.get(attention, {})
    papers = f"{{paper.lra_tasks.{attention}.{task}}}" if known else ""
    cells = (attention, *_cells(runs), papers)
    if runs:
      rows.append(dict(zip(COLUMNS, cells, strict=True)))
  every = [results for runs in found.values() for results in runs]
  return {
    "columns": COLUMNS,
    **made,
    "seeds": rows[0]["seeds"],
    "machine": record.machines(every),
    "differs": " ".join([title, *_notes(task, found)]),
    "rows": rows,
  }


def grown(
  before: Mapping[str, Any] | None, table: dict[str, Any]
) -> dict[str, Any]:
  """The table with rows recorded before, for runs that are no longer here.

  Only a table of the same effort can grow.
  """
  if before is None or before["differs"] != table["differs"]:
    return table
  made = {key: before[key] for key in ("command", "machine", "date", "commit")}
  new = {row["attention"] for row in table["rows"]}
  kept = [
    {**made, **row} for row in before["rows"] if row["attention"] not in new
  ]
  return {**table, "rows": [*kept, *table["rows"]]}


def _cells(runs):
  """Means over the seeds; dashes without runs."""
  if not runs:
    return ["-"] * (len(COLUMNS) - 2)
  paces = [r["steps_per_second"] for r in runs if r["steps_per_second"]]
  peaks = [peak for r in runs if (peak := r.get("peak_memory_bytes"))]
  return [
    _percent([r["last" if _lacks_validation(r) else "best"] for r in runs]),
    _percent([r["last"] for r in runs]),
    _listed(f"{r['last']['step']:,}" for r in runs),
    f"{fmean(paces):.3g}" if paces else "",
    _listed(f"{r['parameters']:,}" for r in runs),
    f"{max(peaks) / 2**20:,.0f} MiB" if peaks else "",
    f"{fmean(r['wall_seconds'] for r in runs) / 60:.1f}",
    ", ".join(str(r["seed"]) for r in runs),
  ]


def _percent(tested):
  """The mean accuracy and, of several, the standard deviation."""
  percents = [100 * metrics["accuracy"] for metrics in tested]
  spread = f" ±{stdev(percents):.2f}" if len(percents) > 1 else ""
  return f"{fmean(percents):.2f}{spread}"


def _listed(texts):
  return ", ".join(dict.fromkeys(texts))


def _lacks_validation(results):
  return results.get("validation_is_test", True)


def _papers(task, attention):
  accuracy, speed = paper.RESULTS.get(attention, {}).get(task, (None, 1))
  if accuracy is None:
    return ""
  return f"{accuracy:g}" if speed == 1 else f"{accuracy:g}, {speed:g}x"


def _notes(task, found):
  every = (results for runs in found.values() for results in runs)
  if any(map(_lacks_validation, every)):
    yield _NO_VALIDATION
  numbers = ", ".join(
    f"{model} {accuracies[task]:.2f}"
    for model, accuracies in published.RESULTS.items()
  )
  yield f"Published for the full task ({published.SOURCE}): {numbers}."
