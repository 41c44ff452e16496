"""The command line of a training script.

A script defines its flags in a `FlagValues` of its own, so that several of
them can be imported side by side. Mistakes end with one line and status 2.
"""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence

import ml_collections
from absl import flags
from ml_collections import config_flags

from nam_jax.training import host_memory
from nam_jax.training.errors import UserError

# What a mistake in a config file, an override or a model's fields raises.
_MISTAKES = (ValueError, TypeError, AttributeError, KeyError, OSError)


def make_flags(
  script: str, default_config: str, argv: Sequence[str], folder: str = "workdir"
) -> flags.FlagValues:
  """The flags that all scripts share: --config, --test_only and the folder.

  Args:
    script: the script's file.
    default_config: a config file, from the script's folder, and its argument.
    argv: the command line.
    folder: name of the flag for the run's folder.
  """
  here = os.path.relpath(os.path.dirname(os.path.abspath(script)))
  values = flags.FlagValues()
  flags.DEFINE_string(
    folder,
    "",
    "folder of this run alone (default: one in runs/ named after the run)",
    flag_values=values,
  )
  flags.DEFINE_bool(
    "test_only",
    False,
    f"do not train; evaluate what is in --{folder}",
    flag_values=values,
  )
  with user_errors():
    config_flags.DEFINE_config_file(
      "config",
      os.path.normpath(os.path.join(here, default_config)),
      "config file and its argument; --config.<key>=<value> changes a key",
      flag_values=values,
      lock_config=False,
      accept_new_attributes=True,  # `from_config_dict` rejects unknown ones
      sys_argv=list(argv),
    )
  return values


def parse(
  values: flags.FlagValues, argv: Sequence[str], usage: str
) -> ml_collections.ConfigDict:
  """Reads the flags from argv and returns the config.

  --help prints the usage and all flags.
  """
  if {"--help", "-h"}.intersection(argv):
    print(f"{usage}{values.get_help(include_special_flags=False)}")
    raise SystemExit(0)
  with user_errors():
    rest = values(list(argv))[1:]
    config = ml_collections.ConfigDict(values.config.to_dict())
  if rest:
    raise UserError(f"unknown argument {rest[0]!r}; see --help")
  return config


def config_file(argv: Sequence[str], default_config: str) -> str:
  """The config file that argv names, without the argument behind it."""
  found = default_config
  for word, after in zip(argv, [*argv[1:], ""], strict=True):
    name, equals, value = word.partition("=")
    if name in ("--config", "-config"):
      found = value if equals else after
  return found.partition(":")[0]


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
  """Around what reads the user's settings: mistakes become `UserError`."""
  try:
    yield
  except (*_MISTAKES, flags.Error) as error:
    # config_flags puts the traceback of a config file into its own message.
    line = str(error).strip().splitlines()[-1].strip()
    raise UserError(re.sub(r"^\w+Error: ", "", line)) from error


def run(main: Callable[[Sequence[str]], None]) -> None:
  """main(sys.argv); a `UserError` is printed and ends with status 2."""
  host_memory.keep_freed_memory()
  try:
    main(sys.argv)
  except UserError as error:
    print(f"error: {error}", file=sys.stderr)
    raise SystemExit(2) from None
