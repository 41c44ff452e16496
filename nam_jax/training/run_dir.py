"""The files of a run's folder that are not metrics or checkpoints.

config.json   the configuration and the fingerprint of the data, written when
              the run starts
results.json  what the script found, with fingerprint and versions, written at
              the end
lock.json     which process uses the folder; see `folder_lock`
"""

import contextlib
import dataclasses
import importlib.metadata
import json
import logging
import os
import platform
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from nam_jax import version
from nam_jax.training import devices, folder_lock, full_disk, whole_files
from nam_jax.training import fingerprint as fingerprint_lib
from nam_jax.training.config import FINGERPRINT, TrainConfig
from nam_jax.training.errors import UserError
from nam_jax.training.fingerprint import Fingerprint

_PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "numpy")
_PRODUCTS = ("checkpoints", "metrics.jsonl", "results.json")


@contextlib.contextmanager
def claimed(
  workdir: str | os.PathLike,
  config: TrainConfig,
  fingerprint: Fingerprint | None = None,
) -> Generator[None]:
  """A context in which the folder belongs to this run alone.

  A folder of another run raises `UserError`, and nothing in it is changed. One
  whose run never began, because its step did not fit into memory, is free.
  """
  _check_claim(workdir, config, fingerprint)
  with owned(workdir):
    if _check_claim(workdir, config, fingerprint):  # it may have begun since
      note_missing(workdir, fingerprint)
    elif devices.is_main():
      fields = dataclasses.asdict(config)
      if fingerprint is not None:
        fields[FINGERPRINT] = fingerprint
      with _writing(workdir):
        whole_files.write_json(Path(workdir) / "config.json", fields)
    yield


@contextlib.contextmanager
def owned(workdir: str | os.PathLike) -> Generator[None]:
  """A context in which no other run uses the folder, which is made."""
  with contextlib.ExitStack() as stack:
    refusal = None
    if devices.is_main():
      try:
        with _writing(workdir):
          Path(workdir).mkdir(parents=True, exist_ok=True)
          tempfile.TemporaryFile(dir=workdir).close()
          stack.enter_context(folder_lock.held(Path(workdir)))
      except UserError as error:
        refusal = error
    # The other processes would wait for one that has given up.
    if not devices.told_by_main(refusal is None):
      raise refusal or UserError(f"process 0 cannot use the folder {workdir}")
    yield


def read_config(
  workdir: str | os.PathLike, config: TrainConfig
) -> dict[str, Any]:
  """The settings in config.json, upgraded by `config` if they are older."""
  settings, _ = _read(workdir)
  return config.upgraded(settings)


def check_same(
  workdir: str | os.PathLike,
  config: TrainConfig,
  fingerprint: Fingerprint | None = None,
) -> None:
  """Raises unless the folder's run has this config and this data."""
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
      " choose another workdir, or continue it with its own settings, which are"
      " in its config.json"
    )
  _, data = _read(workdir)
  if data is None or fingerprint is None:
    return
  try:
    differences = fingerprint_lib.differences(data, fingerprint)
  except (LookupError, TypeError, AttributeError) as error:
    raise UserError(
      f"{workdir}: the fingerprint of the data in config.json is damaged"
    ) from error
  if differences:
    raise UserError(
      f"{workdir} holds a run with other data: {'; '.join(differences)}; use"
      " the same data, or choose another workdir"
    )


def note_missing(
  workdir: str | os.PathLike, fingerprint: Fingerprint | None
) -> None:
  """Says so if the folder's run is too old to have a fingerprint."""
  _, data = _read(workdir)
  if data is None and fingerprint is not None and devices.is_main():
    logging.getLogger(__name__).warning(
      "%s has no fingerprint of its data, being of an older version: make sure"
      " that the data are still the same",
      workdir,
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
  """Writes results.json, with fingerprint and versions; only on main."""
  if devices.is_main():
    known = {}
    if (Path(workdir) / "config.json").exists():
      _, data = _read(workdir)
      known = {} if data is None else {FINGERPRINT: data}
    complete = {**results, **known, "versions": versions()}
    with full_disk.explained(workdir):
      whole_files.write_json(Path(workdir) / "results.json", complete)


def _check_claim(workdir, config, fingerprint):
  """Whether the folder holds this run; raises if it holds another."""
  with _writing(workdir):
    names = set(os.listdir(workdir)) if Path(workdir).exists() else set()
  if "config.json" not in names:
    if foreign := names.intersection(_PRODUCTS):
      raise UserError(
        f"{workdir} has no config.json but holds {', '.join(sorted(foreign))}"
        " from some other run; choose another workdir"
      )
    return False
  with _writing(workdir):
    if not _has_begun(Path(workdir)):
      return False
  check_same(workdir, config, fingerprint)
  return True


def _has_begun(workdir):
  """Whether a run left more than its settings: it may have been refused."""
  return (
    (workdir / "results.json").exists()
    or any(file.stat().st_size for file in workdir.glob("metrics*.jsonl"))
    or any((workdir / "checkpoints").glob("*"))
  )


@contextlib.contextmanager
def _writing(workdir):
  try:
    yield
  except OSError as error:
    raise UserError(
      f"cannot write to workdir {workdir}: {error.strerror}"
    ) from error


def _read(workdir):
  """The settings in config.json, and the fingerprint or None."""
  path = Path(workdir) / "config.json"
  try:
    settings = dict(json.loads(path.read_text(encoding="utf-8")))
  except FileNotFoundError as error:
    raise UserError(f"{workdir} holds no run") from error
  except OSError as error:
    raise UserError(f"cannot read {path}: {error.strerror}") from error
  except (ValueError, TypeError, RecursionError) as error:
    raise UserError(f"{path} is not valid JSON") from error
  return settings, settings.pop(FINGERPRINT, None)
