"""The command line of a small tool: argparse with one-line errors."""

import argparse


class _Parser(argparse.ArgumentParser):
  """Reports a mistake in one line and exits with status 2."""

  def error(self, message):
    self.exit(2, f"error: {message}\n")


def make_parser(doc: str, prog: str | None = None) -> argparse.ArgumentParser:
  """A parser whose --help prints doc as it stands.

  Args:
    doc: what the tool does, with examples: its module's docstring.
    prog: how it is called, if not by the name of its file.
  """
  return _Parser(
    prog=prog,
    description=doc,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
