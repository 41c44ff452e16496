"""The command line of a training script.

Every call makes its own `FlagValues`, so that several scripts can be imported
together. A user error prints one line and exits with status 2.
"""

import contextlib
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from absl import flags
from ml_collections import config_flags

from nam_jax.training import host_memory
from nam_jax.training.errors import UserError

_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What mistakes in a config file, an override or a model's fields raise.
_MISTAKES = (ValueError, TypeError, AttributeError, KeyError, OSError)


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
  with user_errors():
    config_flags.DEFINE_config_file(
      "config",
      os.path.relpath(os.path.join(_ROOT, default_config)),
      "config file and its argument; --config.<key>=<value> changes a key",
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


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
  """Turns mistakes in the user's settings, read inside, into `UserError`."""
  try:
    yield
  except (*_MISTAKES, flags.Error) as error:
    # config_flags puts the traceback of a config file into its own message.
    line = str(error).strip().splitlines()[-1].strip()
    raise UserError(re.sub(r"^\w+Error: ", "", line)) from error


def run(main: Callable[[Sequence[str], str], None], usage: str) -> None:
  """Runs main(sys.argv, usage); a `UserError` prints a line, exits with 2."""
  host_memory.keep_freed_memory()
  try:
    main(sys.argv, usage)
  except UserError as error:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(2) from None
