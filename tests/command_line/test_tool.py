"""Small tools: defaults in the help, one-line errors."""

import pytest

from command_line import tool
from nam_jax.training.errors import UserError


def run(body, *arguments):
  parser = tool.make_parser("What it\ndoes.", "python -m it", "Names:\n  a")
  parser.add_argument("--size", type=int, default=3, help="of all")
  parser.add_argument("--name", help="of it")
  tool.run(parser, body, arguments)


def test_help_keeps_lines_and_shows_defaults(capsys):
  with pytest.raises(SystemExit, match="0"):
    run(print, "--help")
  text = capsys.readouterr().out
  for part in ("What it\ndoes.", "of all (default: 3)", "of it\n", "  a\n"):
    assert part in text


@pytest.mark.parametrize("kind", [UserError, ValueError, OSError])
def test_a_mistake_is_one_line_and_status_2(kind, capsys):
  def body(options):
    raise kind(f"size {options.size}")

  with pytest.raises(SystemExit, match="2"):
    run(body, "--size=5")
  assert capsys.readouterr().err == "error: size 5\n"


def test_other_errors_are_not_hidden():
  def body(options):
    raise KeyError("a bug")

  with pytest.raises(KeyError, match="a bug"):
    run(body)
