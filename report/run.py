"""A run, a kind of run, and how their numbers are written."""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

# What reading a file written by some other program may raise.
FOREIGN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)


class Curve(NamedTuple):
  """The metrics of a whole run, or of one of its stages."""

  config: dict[str, Any]
  rows: list[dict[str, Any]]  # as in metrics.jsonl

  def last(self, name: str) -> float | int | None:
    """The last known value of a metric."""
    values = (row[name] for row in reversed(self.rows) if is_number(row, name))
    return next(values, None)

  def steps(self) -> str:
    """Updates made, and out of how many if there are more to come."""
    made, wanted = self.last("step") or 0, self.config.get("num_steps")
    if not number(wanted) or made == wanted:
      return number(made)
    return f"{number(made)} of {number(wanted)}"


class Run(NamedTuple):
  """A folder with results, or with the metrics of an unfinished run."""

  name: str  # of the folder, seen from where the report looks
  folder: Path
  kind: "Kind"
  config: dict[str, Any]  # empty if there is none
  finished: bool  # has a results.json
  facts: Any  # what `kind.read` made of it; None: nothing
  versions: dict[str, Any]  # empty if there are none
  curves: dict[str, Curve]  # by stage; "" is the run itself
  pictures: dict[str, bytes]  # by file name
  anchor: str  # in the page

  def steps(self) -> str:
    """Updates made; if unknown, those that were asked for."""
    own = self.curves.get("")
    return own.steps() if own else number(self.config.get("num_steps"))


class Kind(NamedTuple):
  """How runs of one script are recognised, read and shown."""

  title: str
  # Keys that only such a run's results.json and config.json have.
  results_keys: frozenset[str]
  config_keys: frozenset[str]
  # (config.json, folder, the run's config) -> the command that repeats the run;
  # "" if none can.
  command: Callable[[str, str, dict[str, Any]], str]
  # results.json -> what the tables need; raises one of FOREIGN.
  read: Callable[[dict[str, Any]], Any]
  # Tables and pictures of all finished runs.
  show: Callable[[Sequence[Run]], list[Element]]
  # Keys of the config.json of a stage, which is a folder inside a run's.
  stage_keys: frozenset[str] = frozenset()


def _unknown(results):
  raise ValueError("unknown keys" if results else "empty")


# Runs of other scripts with the same engine: only their curves.
OTHER = Kind(
  "Other runs", frozenset(), frozenset(), lambda *_: "", _unknown, lambda _: []
)


def command(
  package: str,
  script: str,
  known: Mapping[str, Iterable[str]],
  data_field: str = "",
  generated: Sequence[str] = (),
) -> Callable[[str, str, dict[str, Any]], str]:
  """A `Kind.command` for a training script.

  Args:
    package: the experiment's folder.
    script: its file.
    known: field of the config -> the names that the script knows. Others are
      the user's own, and known after an import.
    data_field: field of the config that names the data, "" if none is read.
    generated: names of data that need no --data_dir.
  """

  def make(config_file: str, folder: str, config: dict[str, Any]) -> str:
    if not config_file:
      return ""
    notes, program = [], f"python {script}"
    own = [
      f"{field} {config[field]!r}"
      for field, names in known.items()
      if field in config and config[field] not in list(names)
    ]
    if own:
      notes.append(f"# MODULE: yours, which registers {' and '.join(own)}")
      program = (
        f"python -c 'import MODULE; from {package} import run;"
        " from command_line import script; script.run(run.main, run.__doc__)'"
      )
    words = [f"--config=configs/saved.py:{config_file}", f"--workdir={folder}"]
    if data_field and config.get(data_field) not in (*generated, None):
      notes.append("# DIR: the folder with the data")
      words.append("--data_dir=DIR")
    line = " \\\n  ".join([program, *map(shlex.quote, words)])
    return "\n".join([*notes, line])

  return make


def by_config(runs: Iterable[Run]) -> list[list[Run]]:
  """The runs in groups that differ only in their seed."""
  groups = {}
  for run in runs:
    # Generated training data depend on the seed, and so does a fingerprint.
    left_out = ("seed", "fingerprint")
    config = {key: run.config[key] for key in run.config if key not in left_out}
    text = json.dumps(config, sort_keys=True) if config else run.name
    groups.setdefault(text, []).append(run)
  return list(groups.values())


def is_number(fields: Mapping[str, Any], name: str) -> bool:
  """Whether the field exists and is a finite number of reasonable size."""
  value = fields.get(name)
  real = isinstance(value, int | float) and not isinstance(value, bool)
  return real and abs(value) < 1e100


def number(value: Any, form: str = ",.10g") -> str:
  """A number as text; empty for anything else."""
  return format(value, form) if is_number({"": value}, "") else ""


def plural(count: int, noun: str) -> str:
  """ "1 run", "2,000 runs"."""
  return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def listed(texts: Iterable[str]) -> str:
  """The distinct texts."""
  return ", ".join(dict.fromkeys(texts))


def percent(shares: Sequence[float], digits: int = 1) -> str:
  """The mean of shares, in percent."""
  return f"{100 * sum(shares) / len(shares):.{digits}f}"


def duration(seconds: Any) -> str:
  """A time as "1 h 5 min", "2 min 10 s" or "7.1 s"; empty for no number."""
  if not number(seconds):
    return ""
  if seconds < 60:
    return f"{seconds:.1f} s"
  minutes, rest = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
