"""Commands that make a run again from the config.json it left."""

import shlex
from collections.abc import Callable
from typing import Any

# Tasks and data that need no files; all others need --data_dir.
_GENERATED = ("basic", "glyphs", None)


def training(
  script: str, folder_flag: str, data_field: str = ""
) -> Callable[[str, str, dict[str, Any]], str]:
  """(config.json, folder, config) -> the command of a training script.

  Args:
    script: its file.
    folder_flag: its flag for the folder of a run.
    data_field: field of the config that says which data the run reads.
  """

  def command(config_file: str, folder: str, config: dict[str, Any]) -> str:
    words = [
      f"--config=configs/saved.py:{config_file}",
      f"{folder_flag}={folder}",
    ]
    if config.get(data_field) not in _GENERATED:
      words.append("--data_dir=DIR")
    return " \\\n  ".join([f"python {script}", *map(shlex.quote, words)])

  return command
