"""The command line of a small tool: argparse with one-line errors."""

import argparse
from collections.abc import Callable, Sequence


class _Formatter(
  argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter
):
  """Keeps line breaks, and shows only defaults that are informative."""

  def _get_help_string(self, action):
    if action.default in (None, False):
      return action.help
    return super()._get_help_string(action)


class _Parser(argparse.ArgumentParser):
  """Reports a mistake in one line and exits with status 2."""

  def error(self, message):
    self.exit(2, f"error: {message}\n")


def make_parser(
  doc: str, prog: str | None = None, epilog: str | None = None
) -> argparse.ArgumentParser:
  """A parser whose --help prints doc as it is.

  Args:
    doc: what the tool does, with examples: its module's docstring.
    prog: how it is called, if not by its file name.
    epilog: what --help prints after the options.
  """
  return _Parser(
    prog=prog,
    description=doc,
    epilog=epilog,
    formatter_class=_Formatter,
    allow_abbrev=False,
  )


def run(
  parser: argparse.ArgumentParser,
  body: Callable[[argparse.Namespace], None],
  arguments: Sequence[str] | None = None,
) -> None:
  """Calls body with the options; an error prints one line, exits with 2."""
  options = parser.parse_args(arguments)
  try:
    body(options)
  except Exception as error:
    from nam_jax.training.errors import UserError

    if not isinstance(error, UserError | ValueError | OSError):
      raise
    parser.error(str(error))
