"""The command line of the scripts."""

import pytest

from command_line import script


@pytest.mark.parametrize(
  ("arguments", "file"),
  [
    ((), "default.py"),
    (("--config=a/b.py",), "a/b.py"),
    (("--config=a/b.py:nam,cpu", "--config.seed=3"), "a/b.py"),
    (("--config", "c.py", "--test_only"), "c.py"),
    (("-config=c.py",), "c.py"),
    (("--config",), ""),
  ],
)
def test_config_file_is_found_on_the_command_line(arguments, file):
  argv = ["train.py", *arguments]
  assert script.config_file(argv, "default.py:nam") == file
