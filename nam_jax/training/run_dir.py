"""The files of a run's folder that are not metrics or checkpoints.

config.json   the configuration, written when the run starts
results.json  what the script found, with versions, written at the end
"""

import dataclasses
import importlib.metadata
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nam_jax import version
from nam_jax.training import devices, whole_files
from nam_jax.training.config import TrainConfig
from nam_jax.training.errors import UserError

_PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")
_PRODUCTS = ("checkpoints", "metrics.jsonl", "results.json")


def claim(workdir: str | os.PathLike, config: TrainConfig) -> None:
  """Claims the folder for this run, or raises without changing anything."""
  workdir = Path(workdir)
  try:
    names = set(os.listdir(workdir)) if workdir.exists() else set()
    if "config.json" in names:
      check_same(workdir, config)
    elif foreign := names.intersection(_PRODUCTS):
      raise UserError(
        f"{workdir} has no config.json but holds {', '.join(sorted(foreign))}"
        " from some other run; choose another workdir"
      )
    if devices.is_main():
      workdir.mkdir(parents=True, exist_ok=True)
      tempfile.TemporaryFile(dir=workdir).close()
      if "config.json" not in names:
        whole_files.write_json(
          workdir / "config.json", dataclasses.asdict(config)
        )
  except OSError as error:
    raise UserError(
      f"cannot write to workdir {workdir}: {error.strerror}"
    ) from error


def read_config(
  workdir: str | os.PathLike, config: TrainConfig
) -> dict[str, Any]:
  """The folder's config.json, upgraded by `config` if it is older."""
  path = Path(workdir) / "config.json"
  try:
    return config.upgraded(json.loads(path.read_text()))
  except FileNotFoundError as error:
    raise UserError(f"{workdir} holds no run") from error
  except ValueError as error:
    raise UserError(f"{path} is not valid JSON") from error


def check_same(workdir: str | os.PathLike, config: TrainConfig) -> None:
  """Raises unless the folder's config.json equals `config`."""
  theirs = read_config(workdir, config)
  ours = json.loads(json.dumps(dataclasses.asdict(config)))
  differences = [
    f"{key} is {theirs.get(key, 'absent')!r} there and"
    f" {ours.get(key, 'absent')!r} here"
    for key in sorted(theirs.keys() | ours.keys())
    if theirs.get(key, ...) != ours.get(key, ...)
  ]
  if differences:
    raise UserError(
      f"{workdir} holds a run with another config: {'; '.join(differences)};"
      " choose another workdir"
    )


def versions() -> dict[str, str]:
  """Python, this package, and the packages that decide the numbers."""
  found = {name: importlib.metadata.version(name) for name in _PACKAGES}
  return {
    "python": platform.python_version(),
    "nam_jax": version.__version__,
  } | found


def write_results(
  workdir: str | os.PathLike, results: Mapping[str, Any]
) -> None:
  """Writes results.json, with the versions added; only the main process."""
  if devices.is_main():
    complete = {**results, "versions": versions()}
    whole_files.write_json(Path(workdir) / "results.json", complete)
