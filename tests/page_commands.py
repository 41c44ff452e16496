"""Runs the commands on the pages, in this process, with tiny sizes.

Most training runs stop before they start: flags, config, data and model are
real, but nothing is trained. REAL names those that later blocks of a page rely
on, at least one for each script; they are trained for one update.
"""

import contextlib
import importlib.util
import pathlib
import runpy
import subprocess
import sys
import types
from collections.abc import Callable, Sequence

import ml_collections
import pytest

from algorithmic import data
from command_line import script, tables
from lra_tasks import effort
from lra_tasks import run as lra_run
from nam_jax import training
from tests import project_tree

Words = Sequence[str]

REAL = (
  "--workdir=runs/demo",
  "configs/lra/listops.py:mean",
  "configs/fewshot/folder.py",
)

STEPS = ("num_steps=1", "eval_every=1", "log_every=1", "tensorboard=False")
TRAINING = (*STEPS, "batch_size=2", "eval_batch_size=8", "accumulate_steps=1")
SIZES = {
  "emb_dim": 8,
  "num_heads": 2,
  "qkv_dim": 8,
  "mlp_dim": 8,
  "num_layers": 1,
  "merge": (1,),
  "readout_dim": 4,
  "state_features": 2,
  "tape_length": 8,
}
EPISODES = (
  *("num_way=1", "num_query=1", "num_base_query=2"),
  *("train_query=1", "train_base_query=2"),
  *("num_episodes=4", "num_val_episodes=4", "curve_shots=()"),
)
SOURCES = {
  "glyphs": ("num_base=3", "num_val=1", "num_novel=1", "num_base_train=9"),
  "omniglot": ("num_val=2", "num_base_val=1", "num_base_test=1"),
  "mini-imagenet": ("image_size=8", "num_base_val=1", "num_base_test=2"),
  "cifar-fs": ("num_base_val=1",),
  "folder": ("image_size=8",),
  "features": ("num_base_val=1", "num_base_test=1"),
}


class Started(Exception):
  """Training would start here, or the result of a run is needed."""


def config_flags(names: Words, prefix: str = "") -> list[str]:
  """Flags that change fields of the config."""
  return [f"--config.{prefix}{name}" for name in names]


def option(words: Words, name: str, default: str) -> str:
  """The value of the last --name=value."""
  values = [w.partition("=")[2] for w in words if w.startswith(f"{name}=")]
  return values[-1] if values else default


def load_config(words: Words, default: str) -> ml_collections.ConfigDict:
  """The config that the command names; an unknown name in it raises."""
  file, colon, argument = option(words, "--config", default).partition(":")
  spec = importlib.util.spec_from_file_location("config", file)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module.get_config(argument) if colon else module.get_config()


def sizes(config: ml_collections.ConfigDict) -> list[str]:
  """Flags that make the model of a config tiny."""
  known = [name for name in SIZES if name in config.model_kwargs]
  values = [f"{name}={SIZES[name]}" for name in known]
  return config_flags(values, "model_kwargs.")


def algorithmic(words: Words) -> list[str]:
  """Shortens train_algorithmic.py."""
  if not option(words, "--config", ""):  # a Turing machine compiles for long
    words = ["--config=configs/algorithmic/palin.py:lstm", *words]
  config = load_config(words, "")
  flags = config_flags((*TRAINING, "warmup_steps=0"))
  return [*words, *flags, *sizes(config)]


def lra(words: Words) -> list[str]:
  """Shortens train_lra.py; a benchmark's own config in CHECKOUT is tiny."""
  if "/lra_benchmarks/" in option(words, "--config", ""):
    return list(words)
  config = load_config(words, "configs/lra/listops.py:nam,cpu")
  rows = ("num_train=16", "num_validation=4", "num_test=4", "min_length=10")
  data = rows if config.task == "listops" else ()
  if config.task not in ("image", "pathfinder"):
    data = (*data, "max_length=32")
  return [
    *(*words, *config_flags((*TRAINING, "warmup_steps=1")), *sizes(config)),
    *config_flags(data, "task_kwargs."),
  ]


def fewshot(words: Words) -> list[str]:
  """Shortens train_fewshot.py: one head instead of all of the config's."""
  name = option(words, "--config", "configs/fewshot/glyphs.py")
  config = load_config(words, name)
  shots = (5,) if config.data in ("folder", "glyphs") else (1,)
  stage = (*STEPS, "batch_size=2", "warmup_steps=0")
  backbone = ("backbone=conv", "backbone_kwargs.widths=()")
  return [
    f"--config={name.partition(':')[0]}:nam",
    *(word for word in words if not word.startswith("--config=")),
    *config_flags(() if config.data == "features" else backbone),
    *config_flags((*EPISODES, f"shots={shots}")),
    *config_flags(SOURCES[config.data], "data_kwargs."),
    *config_flags(stage, "stage1."),
    *config_flags(stage, "stage2."),
  ]


def adding(*more: str) -> Callable[[Words], list[str]]:
  """Arguments that follow the others."""
  return lambda words: [*words, *more]


def algorithmic_table(words: Words) -> list[str]:
  """One cell of a table."""
  suite = option(words, "--suite", "paper")
  task = {"paper": "palin", "recall": "recall-16"}.get(suite, "parity")
  model = "nam_tm" if suite == "paper" else "nam"
  return [
    *words,
    *(f"--tasks={task}", f"--models={model}", "--seeds=0", "--jobs=1"),
  ]


# Every program that a page may name, and what makes it short.
PROGRAMS: dict[str, Callable[[Words], list[str]]] = {
  "train_algorithmic.py": algorithmic,
  "train_lra.py": lra,
  "train_fewshot.py": fewshot,
  "algorithmic_table.py": algorithmic_table,
  "fewshot_table.py": adding("--tasks=glyphs", "--seeds=0", "--jobs=1"),
  "lra_table.py": adding("--tasks=text", "--attentions=nam", "--jobs=1"),
  "algorithmic.parity": adding("--steps=1"),
  "algorithmic.show": list,
  "benchmarks": adding("--quick", "--groups=streaming"),
  "benchmarks.accelerators": adding("--help"),
  "benchmarks.family": adding("--help"),
  "data_files.prepare": adding("--help"),
  "data_files.unpickle": list,
  "docs.picture": adding("--help"),
  "fewshot.classify": list,
  "fewshot.inspect": adding("--image_size=8"),
  "lra_tasks.inspect": list,
  "lra_tasks.pathfinder_generator": adding("--count=4", "--output_dir=images"),
  "report": list,
}


def file_of(program: str) -> pathlib.Path:
  """The script, or the module, that Python runs."""
  if program.endswith(".py"):
    return project_tree.ROOT / program
  path = project_tree.ROOT / program.replace(".", "/")
  return path / "__main__.py" if path.is_dir() else path.with_suffix(".py")


@contextlib.contextmanager
def shortened():
  """Inside, all scripts are short; see the module's docstring."""
  is_real, missing = False, set(REAL)

  def read(argv, *args, read=script.read):
    nonlocal is_real
    named = {name for name in missing if any(name in word for word in argv)}
    missing.difference_update(named)  # once is enough
    is_real = bool(named)
    name = pathlib.Path(argv[0]).name
    words = argv[1:] if "--help" in argv else PROGRAMS[name](argv[1:])
    return read([argv[0], *words], *args)

  def unless_real(function):
    def called(*args):
      if not is_real:
        raise Started
      return function(*args)

    return called

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(script, "read", read)
    patch.setattr(tables, "subprocess", types.SimpleNamespace(run=_here))
    for protocol in data.PROTOCOLS.values():
      for name, split in protocol.splits.items():
        patch.setitem(protocol.splits, name, split._replace(size=8))
    pace = effort.Pace(step_seconds=1.0, evaluation_seconds=1.0)
    patch.setattr(lra_run, "measure_pace", lambda *_: pace)
    slow = ((training, "fit"), (training, "load"), (lra_run, "load"))
    for module, name in slow:
      patch.setattr(module, name, unless_real(getattr(module, name)))
    yield


def run(arguments: Words) -> None:
  """Runs what follows `python`; anything but success is an error."""
  _, *arguments = arguments if arguments[0] == "-m" else ("", *arguments)
  program, *words = arguments
  if program not in PROGRAMS:
    raise LookupError(
      f"{program} is not in PROGRAMS of {__name__}: say how to shorten it"
    )
  is_training = program.startswith("train_")
  if not is_training and "--help" not in words:
    words = PROGRAMS[program](words)
  with contextlib.suppress(Started):
    _execute(program, words)


def _execute(program, words):
  file = str(file_of(program))
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(sys, "argv", [file, *words])
    patch.setattr(sys, "path", list(sys.path))
    try:
      runpy.run_path(file, run_name="__main__")
    except SystemExit as end:
      if end.code:
        raise RuntimeError(f"{program} ends with {end.code}") from end


def _here(command: Words, **_) -> subprocess.CompletedProcess:
  """Replaces the process that a table of results starts for a run."""
  _, program, *words = map(str, command)
  run([pathlib.Path(program).name, *words])
  return subprocess.CompletedProcess(command, 0)
