"""A file in the folder of a run is damaged; then the run is used.

The report and --test_only read the folder, and the same command continues the
run, all within this process.
"""

import functools
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from chaos import lab as lab_lib
from chaos import mutations, toy
from chaos.case import Case
from chaos.inside import call
from chaos.lab import Lab
from command_line import script
from report import __main__ as report

# Each kind of file as often as it is listed; a run that was stopped has no
# results.
_FILES = (
  *("checkpoints/*/[!s]*", "checkpoints/*/state/**/*") * 2,
  *("checkpoints/*/seal.json", "metrics.jsonl", "config.json") * 2,
  *("results.json", "lock.json"),
)
# The runs whose files are damaged.
BASES = ("half", "whole")
# What depends on a checkpoint that a damage may take.
_OF_BEST = ("best", "best_step")


def make_trial(lab: Lab) -> Callable[[Case], None]:
  """What runs a trial."""
  tested = {"whole": lab_lib.results(lab.folder / "whole")}
  with tempfile.TemporaryDirectory() as folder:
    half = shutil.copytree(lab.folder / "half", Path(folder) / "half")
    toy.run(half, test_only=True)
    tested["half"] = lab_lib.results(half)
  return functools.partial(_trial, lab.folder, tested)


def _trial(reference, tested, case):
  base = case.rng.choice(BASES)
  workdir = case.folder / "run"
  shutil.copytree(reference / base, workdir)
  file = choose(case.rng, workdir)
  name = file.relative_to(workdir).as_posix()
  sound = file.read_bytes()
  case.note(f"{base}, {name}, {_damage(case.rng, file)}")
  word = name if "/" not in name else "/".join(name.split("/")[:2])
  _report(case, workdir)
  if case.rng.random() < 0.5:
    _test(case, workdir, tested[base], word)
  status, output = _run(case, workdir)
  if status == 2 and name == "config.json":
    case.note("refused")
    file.write_bytes(sound)
    status, output = _run(case, workdir)
  if status:
    case.blame("lost", f"status {status} after {output[-200:]!r}")
    return
  _compare(case, workdir, reference / "whole", word in output, name)


def choose(rng: random.Random, workdir: Path) -> Path:
  """A file of a run."""
  while True:
    found = sorted(p for p in workdir.glob(rng.choice(_FILES)) if p.is_file())
    if found:
      return rng.choice(found)


def _damage(rng, file):
  if rng.random() < 0.1:
    file.unlink()
    return "deleted"
  what, content = mutations.damage(rng, file.read_bytes())
  file.write_bytes(content)
  return what


def _run(case, workdir, *flags):
  argv = ["toy", str(workdir), *flags]
  body = functools.partial(toy.main, argv)
  return call(case, lambda: script.run(lambda *_: body(), ""))


def _report(case, workdir):
  page = case.folder / "report.html"
  call(case, lambda: report.main([str(workdir), f"--output={page}"]))


def _test(case, workdir, expected, word):
  status, output = _run(case, workdir, "--test_only")
  case.note(f"tested: status {status}")
  if status == 0 and word not in output:
    found = lab_lib.results(workdir)
    if found != expected:
      case.blame("wrong", "--test_only finds other numbers without a word")


def _compare(case, workdir, whole, is_said, name):
  """What is damaged may be missing, if that is said."""
  ours, theirs = lab_lib.results(workdir), lab_lib.results(whole)
  differ = {n for n in ours | theirs if ours.get(n) != theirs.get(n)}
  if differ and not (is_said and differ <= {*_OF_BEST}):
    case.blame("wrong", f"results.json differs in {', '.join(sorted(differ))}")
  if not (is_said and name == "metrics.jsonl"):
    lab_lib.compare_rows(case, workdir, whole)
