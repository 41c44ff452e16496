"""Checkpoints of a run: the newest two and the best. Only this file uses orbax.

A checkpoint is the folder checkpoints/<step>. Once orbax has written it, the
file seal.json is added: the score of the evaluation at that step, the shapes of
all arrays, the size and checksum of every file, and a checksum of all this. A
folder without a seal was only partly written or removed, and is deleted. One
that does not match its seal is damaged; it is moved to damaged/, and the run
continues from the one before. Parameters that are not finite are not saved.
"""

import errno
import json
import logging
import math
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp

from nam_jax.training import devices, whole_files
from nam_jax.training.config import TrainConfig
from nam_jax.training.errors import TrainingDiverged, UserError
from nam_jax.training.state import TrainState

_SEAL = "seal.json"
# What reading a damaged seal may raise.
_DAMAGE = (
  *(OSError, ValueError, LookupError),
  *(TypeError, AttributeError, RecursionError),
)
# Bytes of a checkpoint besides its arrays, and some to spare.
_OVERHEAD = 1 << 20


class Checkpoints:
  """Saves and restores the states of one run."""

  def __init__(self, workdir: str | os.PathLike, config: TrainConfig):
    self._path = Path(workdir).resolve() / "checkpoints"
    self._sign = 1 if config.selection_mode == "max" else -1
    if devices.is_main():
      _tidy(self._path)
    devices.wait_for_all("checkpoints are checked")
    self._scores, _ = _scan(self._path)  # by step; higher is better
    options = ocp.CheckpointManagerOptions(
      cleanup_tmp_directories=True, enable_async_checkpointing=False
    )
    self._manager = ocp.CheckpointManager(self._path, options=options)

  def __enter__(self) -> "Checkpoints":
    return self

  def __exit__(self, *_) -> None:
    self._manager.close()

  @property
  def newest_step(self) -> int | None:
    return max(self._scores, default=None)

  @property
  def best_step(self) -> int | None:
    """The step with the best selection metric; the latest if several tie."""
    return _best(self._scores)

  def is_best(self, metric: float | None) -> bool:
    """Whether a state with this selection metric would be the best."""
    score = self._score(metric)
    best = max(self._scores.values(), default=-math.inf)
    return score > -math.inf and score >= best

  def save(
    self,
    step: int,
    state: TrainState,
    memory: dict[str, Any],
    metric: float | None,
  ) -> None:
    """Writes a checkpoint, then removes those no longer needed.

    Raises `TrainingDiverged` if the parameters are not finite.

    Args:
      step: number of updates made.
      state: all arrays.
      memory: what else the run must remember, as JSON.
      metric: the selection metric, if this step was evaluated.
    """
    if not _is_finite(state):
      raise TrainingDiverged(f"the parameters are not finite after step {step}")
    _check_room(self._path, state)
    arguments = ocp.args.Composite(
      state=ocp.args.StandardSave(state), memory=ocp.args.JsonSave(memory)
    )
    self._manager.save(step, args=arguments, force=True)
    self._scores[step] = self._score(metric)
    if devices.is_main():
      _seal(self._path / str(step), self._scores[step], _arrays(state))
    devices.wait_for_all("checkpoint is sealed")
    keep = {*sorted(self._scores)[-2:], self.best_step}
    for old in sorted(self._scores.keys() - keep):
      if devices.is_main():
        (self._path / str(old) / _SEAL).unlink()
      self._manager.delete(old)
      del self._scores[old]

  def restore_newest(
    self, shapes: TrainState
  ) -> tuple[TrainState, dict[str, Any]] | tuple[None, None]:
    """State and memory of the newest finite checkpoint, if there is one.

    Older versions saved parameters that are not finite; they are moved away.
    """
    while (step := self.newest_step) is not None:
      state, memory = _restore(self._path / str(step), shapes)
      if _is_finite(state):
        return state, memory
      del self._scores[step]
      if devices.is_main():
        _set_aside(self._path, {step: "it is not finite"}, self._scores)
      devices.wait_for_all("checkpoint is moved away")
      self._manager.reload()
    return None, None

  def restore(self, step: int, shapes: TrainState) -> TrainState:
    """The state of a checkpoint."""
    state, _ = _restore(self._path / str(step), shapes)
    return state

  def _score(self, metric):
    if metric is None or math.isnan(metric):
      return -math.inf
    return self._sign * metric


def newest_step(workdir: str | os.PathLike) -> int | None:
  """The step of the newest intact checkpoint of a run."""
  scores, _ = _scan(Path(workdir) / "checkpoints")
  return max(scores, default=None)


def restore(
  workdir: str | os.PathLike, shapes: TrainState
) -> tuple[TrainState, TrainState, dict[str, Any]]:
  """The newest and the best state of a run, and the memory of the newest.

  The folder is only read.
  """
  path = Path(workdir).resolve() / "checkpoints"
  scores, damaged = _scan(path)
  for step, reason in damaged.items():
    _warn(f"checkpoint {path / str(step)} is damaged ({reason})")
  for folder in _folders(path):
    if not (folder / _SEAL).exists():
      _warn(f"checkpoint {folder} is incomplete")
  if not scores:
    raise UserError(f"{workdir} holds no checkpoint that can be restored")
  newest, memory = _restore(path / str(max(scores)), shapes)
  best = newest
  if _best(scores) != max(scores):
    best, _ = _restore(path / str(_best(scores)), shapes)
  return newest, best, memory


def _restore(folder, shapes):
  theirs = _read_seal(folder)["arrays"]
  ours = _arrays(shapes)
  for name in theirs | ours:
    if theirs.get(name) != ours.get(name):
      raise UserError(
        f"checkpoint {folder} belongs to another model: {name} is"
        f" {theirs.get(name, 'absent')} there and"
        f" {ours.get(name, 'absent')} here"
      )
  arguments = ocp.args.Composite(
    state=ocp.args.StandardRestore(shapes), memory=ocp.args.JsonRestore()
  )
  # A manager would also read the others, which may be damaged.
  with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
    restored = checkpointer.restore(folder, args=arguments)
  return restored["state"], restored["memory"]


def _is_finite(state):
  return bool(_all_finite(state.params))


@jax.jit
def _all_finite(params):
  found = [jnp.isfinite(x).all() for x in jax.tree.leaves(params)]
  return jnp.stack(found).all()


def _check_room(path, state):
  """Raises before orbax does, all of whose threads would print tracebacks."""
  needed = sum(x.nbytes for x in jax.tree.leaves(state)) + _OVERHEAD
  disk = shutil.disk_usage(path)
  if disk.total and disk.free < needed:  # some network drives do not tell
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def _arrays(state):
  """Type and shape of each array by its path."""
  return {
    jax.tree_util.keystr(path, simple=True, separator="/"): (
      f"{x.dtype}{list(x.shape)}"
    )
    for path, x in jax.tree_util.tree_leaves_with_path(state)
  }


def _best(scores):
  return max(scores, key=lambda step: (scores[step], step), default=None)


def _scan(path):
  """Scores of the intact checkpoints, and what is wrong with the others."""
  scores, damaged = {}, {}
  for folder in _folders(path):
    if (folder / _SEAL).exists():
      try:
        scores[int(folder.name)] = _check(folder)
      except _DAMAGE as error:
        damaged[int(folder.name)] = str(error)
  return scores, damaged


def _folders(path):
  found = path.iterdir() if path.exists() else ()
  return [folder for folder in found if folder.name.isdecimal()]


def _seal(folder, score, arrays):
  content = {
    "score": None if score == -math.inf else score,
    "arrays": arrays,
    "files": {
      name: whole_files.checksum(folder / name) for name in _files(folder)
    },
  }
  content["crc32"] = _checksum(content)
  whole_files.write_json(folder / _SEAL, content)


def _read_seal(folder):
  """The content of a seal; an exception says what is damaged."""
  content = json.loads((folder / _SEAL).read_text())
  is_old = set(content) == {"score", "arrays", "files"}  # not protected itself
  if not is_old and content.pop("crc32", None) != _checksum(content):
    raise ValueError(f"{_SEAL} has changed")
  return content


def _checksum(content):
  return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _check(folder):
  """The score of a checkpoint; an exception says what is damaged."""
  seal = _read_seal(folder)
  present = _files(folder)
  for name, expected in seal["files"].items():
    if name not in present:
      raise ValueError(f"{name} is missing")
    if whole_files.checksum(folder / name) != expected:
      raise ValueError(f"{name} has changed")
  return -math.inf if seal["score"] is None else float(seal["score"])


def _files(folder):
  found = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
  return {str(name) for name in found} - {_SEAL}


def _tidy(path):
  """Removes folders without a seal, and moves the damaged ones away."""
  scores, damaged = _scan(path)
  for folder in _folders(path):
    if not (folder / _SEAL).exists():
      shutil.rmtree(folder)
      _warn(
        f"checkpoint {folder} is incomplete and was removed, {_plan(scores)}"
      )
  _set_aside(path, damaged, scores)


def _set_aside(path, damaged, scores):
  """Moves checkpoints away; `damaged` says why, `scores` has the others."""
  for step, reason in damaged.items():
    aside = path.parent / "damaged" / str(step)
    while aside.exists():
      aside = aside.with_name(aside.name + "-again")
    aside.parent.mkdir(exist_ok=True)
    os.rename(path / str(step), aside)
    _warn(
      f"checkpoint {path / str(step)} is damaged ({reason}) and was moved to"
      f" {aside}, {_plan(scores)}"
    )


def _plan(scores):
  return f"continuing from step {max(scores)}" if scores else "starting again"


def _warn(message):
  logging.getLogger(__name__).warning(message)
