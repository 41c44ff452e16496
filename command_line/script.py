"""The command line of a training script.

Every call makes its own `FlagValues`, so that several scripts can be imported
together. A user error prints one line and exits with status 2.
"""

import contextlib
import difflib
import os
import pathlib
import re
import shlex
import sys
import textwrap
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
from absl import flags
from ml_collections import config_flags

from nam_jax.training import devices, full_disk, host_memory
from nam_jax.training.errors import UserError

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What mistakes in a config file, an override or a model's fields raise.
_MISTAKES = (ValueError, TypeError, AttributeError, KeyError, OSError)
# What config_flags puts before them.
_NOT_LOADED = "Configuration is not available because of an earlier failure to"
_NOT_LOADED += " load: "
# If another process has died, this one is ended within so many seconds.
_VERDICT = 5


def read(
  argv: Sequence[str],
  usage: str,
  default_config: str,
  names: Mapping[str, Iterable[str]],
  more: Mapping[str, str],
) -> tuple[flags.FlagValues, dict[str, Any]]:
  """The flags in argv, and all fields of the config.

  Every script has --config, --workdir and --test_only; --help prints the usage,
  the names and all flags.

  Args:
    argv: the command line.
    usage: what the script does.
    default_config: a config file in the checkout, and its argument.
    names: what a config can choose from: {"presets": ("cpu", "paper")}.
    more: the script's own flags, all strings, and their help. The help
      "=workdir" makes the flag an alias of --workdir.
  """
  default = os.path.relpath(os.path.join(_ROOT, default_config))
  values = flags.FlagValues()
  flags.DEFINE_string(
    "workdir",
    "",
    "folder for this run alone (default: one in runs/ named after the run)",
    flag_values=values,
  )
  flags.DEFINE_bool(
    "test_only",
    False,
    "do not train; evaluate what is in --workdir",
    flag_values=values,
  )
  for name, meaning in more.items():
    if meaning.startswith("="):
      flags.DEFINE_alias(name, meaning[1:], flag_values=values)
    else:
      flags.DEFINE_string(name, "", meaning, flag_values=values)
  _check_config_file(config_file(argv, default), default)
  with user_errors():
    config_flags.DEFINE_config_file(
      "config",
      default,
      "config file, a Python program that is run, and its argument;"
      " --config.<key>=<value> changes a key",
      flag_values=values,
      lock_config=False,
      accept_new_attributes=True,  # `from_config_dict` rejects unknown ones
      sys_argv=list(argv),
    )
    if {"--help", "-h"}.intersection(argv):
      flag_help = values.get_help(include_special_flags=False).strip()
      flag_help = flag_help.partition("\n")[2]  # below this module's name
      print(with_names(usage, names), "flags:", flag_help, sep="\n")
      raise SystemExit(0)
    rest = values(list(argv))[1:]
    if rest:
      raise UserError(f"unknown argument {rest[0]!r}; see --help")
    return values, values.config.to_dict()


def with_names(usage: str, names: Mapping[str, Iterable[str]]) -> str:
  """The usage, followed by what there is to choose from."""
  lists = (f"{kind}: {', '.join(known)}" for kind, known in names.items())
  filled = (textwrap.fill(text, 80, subsequent_indent="  ") for text in lists)
  return "\n".join([usage, *filled, ""])


def config_file(argv: Sequence[str], default_config: str) -> str:
  """The config file that argv names, without the argument after it."""
  found = default_config
  for word, after in zip(argv, [*argv[1:], ""], strict=True):
    name, equals, value = word.partition("=")
    if name in ("--config", "-config"):
      found = value if equals else after
  return found.partition(":")[0]


def _check_config_file(file, default):
  """Raises if there is no such file; similar ones are beside it or ours."""
  path = pathlib.Path(file)
  if path.is_file():
    return
  ours = pathlib.Path(default.partition(":")[0]).parent
  known = sorted({*path.parent.glob("*.py"), *ours.glob("*.py")})
  near = difflib.get_close_matches(path.stem, [other.stem for other in known])
  names = [str(other) for other in known if other.stem in near]
  if names:
    hint = f"did you mean {' or '.join(names)}?"
  else:
    hint = f"there are {', '.join(map(str, sorted(ours.glob('*.py'))))}"
  raise UserError(f"--config={file}: no such file; {hint}")


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
  """Turns mistakes in the user's settings, read inside, into `UserError`."""
  try:
    yield
  except (*_MISTAKES, flags.Error) as error:
    # config_flags puts the traceback of a config file into its own message.
    line = str(error).strip().splitlines()[-1].strip()
    for noise in (_NOT_LOADED, r"\w+Error: ", r"\[Errno \d+\] "):
      line = re.sub("^" + noise, "", line)
    raise UserError(line) from error


def ending(workdir: Path, argv: Sequence[str], *more: str) -> str:
  """Where the results of a run are, and what to try next.

  Args:
    workdir: the run's folder.
    argv: the command line.
    more: flags to call the script with again; none: once is enough.
  """
  has_pictures = any(workdir.glob("*.png"))
  made = "results.json and pictures are" if has_pictures else "results.json is"
  python = sys.executable
  python = os.path.relpath(python) if python.startswith(_ROOT) else "python"
  lines = [f"{made} in {workdir}; to try next:"]
  # A call from other code cannot be repeated by a command.
  if more and argv is sys.argv:
    flags = [word for word in argv[1:] if word not in more]
    lines.append(shlex.join([python, argv[0], *flags, *more]))
  folder = workdir.parent
  enter = ""
  if os.getcwd() != _ROOT:
    folder, enter = folder.resolve(), f"cd {shlex.quote(_ROOT)}; "
  lines.append(enter + shlex.join([python, "-m", "report", str(folder)]))
  return "\n  ".join(lines)


def run(main: Callable[[Sequence[str], str], None], usage: str) -> None:
  """Runs main(sys.argv, usage); a `UserError` prints a line, exits with 2."""
  host_memory.keep_freed_memory()
  try:
    main(sys.argv, usage)
    devices.wait_for_all("the end of the script")
    return
  except UserError as error:
    print(f"error: {error}", file=sys.stderr)
    status = 2
  except Exception as error:
    if why := full_disk.reason(error):
      file = getattr(error, "filename", None) or "a file"
      print(f"error: cannot write {file}: {why}; make room", file=sys.stderr)
      status = 2
    elif jax.distributed.is_initialized():
      time.sleep(_VERDICT)
      traceback.print_exc()
      status = 1
    else:
      raise
  if jax.distributed.is_initialized():
    sys.stdout.flush()
    os._exit(status)  # JAX would wait for the others, and they for this one
  raise SystemExit(status)
