"""Where the numbers of a run go: metrics.jsonl, the terminal, and dashboards.

Each line of metrics.jsonl is a JSON object with `step` (updates made),
`kind` ("train": means since the last such line; "eval": an evaluation), the
metrics by name, and `seconds` (duration of the run so far, over all restarts).
Training lines also have `learning_rate`, `steps_per_second`, which leaves out
compilation, evaluation and checkpoints, and `input_wait`, the share of this
time spent waiting for the next batch. A number that is not finite is written
as null. Lines that are nothing of this kind are moved to metrics.damaged.jsonl.
"""

import dataclasses
import importlib.util
import json
import logging
import math
import os
import uuid
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxtyping import Array

from nam_jax.training import (
  devices,
  progress,
  schedules,
  tensorboard,
  whole_files,
)
from nam_jax.training.config import TrainConfig
from nam_jax.training.errors import UserError

# The fields in which two runs with the same config may differ.
TIME_FIELDS = ("seconds", "steps_per_second", "input_wait")


def check_installed(config: TrainConfig) -> None:
  """Raises if the config asks for a dashboard whose package is missing."""
  packages = {"tensorboard": "tensorboardX", "wandb": "wandb"}
  for field, package in packages.items():
    if getattr(config, field) and not importlib.util.find_spec(package):
      raise UserError(
        f"{field}={getattr(config, field)} needs the package {package}: pip"
        f" install {package}"
      )


class MetricsLog:
  """Collects the metrics of the steps and writes rows everywhere.

  `memory` is what `memory()` returned at step `start` of an interrupted run;
  rows of later steps are dropped, since those steps run again.
  """

  def __init__(
    self,
    workdir: str | os.PathLike,
    config: TrainConfig,
    start: int,
    memory: Mapping[str, Any] | None,
  ):
    workdir = Path(workdir)
    before = memory or {}
    self.clock = progress.Clock(before.get("seconds", 0.0))
    rows, damaged = _read(workdir)
    self.history = [row for row in rows if row["step"] <= start]
    self._checksum = _checksum(map(_line, self.history))
    self._window = progress.Window(before.get("window", []))
    self._config, self._start = config, start
    self._schedule = schedules.make_schedule(config)
    self._file = self._tensorboard = self._wandb = None
    if devices.is_main():
      _set_aside(workdir, damaged)
      _report_changes(workdir, start, self.memory(), before)
      self._file = _continued(workdir / "metrics.jsonl", self.history)
      if config.tensorboard:
        self._tensorboard = tensorboard.Events(workdir / "summary", start)
      if config.wandb:
        self._wandb = _start_wandb(workdir, config)

  def __enter__(self) -> "MetricsLog":
    return self

  def __exit__(self, *_) -> None:
    if self._file:
      self._file.close()
    if self._tensorboard:
      self._tensorboard.close()
    if self._wandb:
      self._wandb.finish()

  def add(self, step: int, metrics: Mapping[str, tuple[Array, Array]]) -> None:
    """Takes the metrics of a step, without waiting for them."""
    self._window.add(step, metrics)
    if step == self._start + 1:
      self._window.fetch()
      self.clock.compiled(step)

  def check_finite(self) -> None:
    """Raises `TrainingDiverged` if a step so far was not finite."""
    self._window.fetch()

  def memory(self) -> dict[str, Any]:
    """What a checkpoint must keep for the log to continue uninterrupted."""
    return {
      "seconds": self.clock.seconds,
      "window": self._window.fetch(),
      "rows": len(self.history),
      "crc32": self._checksum,  # of the rows
    }

  def train(self, step: int) -> None:
    """Logs the mean metrics of the steps since the last call."""
    metrics = self._window.mean()
    pace, wait = self.clock.pace(step)
    row = {
      **metrics,
      "learning_rate": float(self._schedule(step - 1)),
      "steps_per_second": pace,
      "input_wait": wait,
    }
    self._write(step, "train", row)
    left = _duration(self.clock.seconds_left(step, self._config.num_steps))
    ending = f"  {pace:.3g} steps/s  {left} left" if pace else ""
    self._print(step, metrics, ending)

  def evaluation(self, step: int, metrics: Mapping[str, float]) -> None:
    """Logs what the script's `evaluate` returned."""
    self._write(step, "eval", metrics)
    self._print(step, metrics, "  (evaluation)")

  def _write(self, step, kind, values):
    if taken := {"step", "kind", "seconds"}.intersection(values):
      raise ValueError(f"a metric must not be named {min(taken)!r}")
    values = {
      name: float(value) if value is not None and math.isfinite(value) else None
      for name, value in [*values.items(), ("seconds", self.clock.seconds)]
    }
    row = {"step": step, "kind": kind, **values}
    self.history.append(row)
    self._checksum = _checksum([_line(row)], self._checksum)
    if self._file:
      self._file.write(_line(row))
      self._file.flush()
    known = {name: v for name, v in values.items() if v is not None}
    known = self._config.tensorboard_scalars(kind, known)
    if self._tensorboard:
      for name, value in known.items():
        self._tensorboard.add_scalar(name, value, step)
      self._tensorboard.flush()
    if self._wandb:
      self._wandb.log(known, step=step)

  def _print(self, step, metrics, ending):
    if devices.is_main():
      total = str(self._config.num_steps)
      numbers = "  ".join(f"{name} {x:.4g}" for name, x in metrics.items())
      print(f"step {step:{len(total)}}/{total}  {numbers}{ending}", flush=True)


def read_metrics(workdir: str | os.PathLike) -> list[dict[str, Any]]:
  """The rows of metrics.jsonl; one line says how many are damaged."""
  rows, damaged = _read(Path(workdir))
  if damaged:
    _warn(f"left out {len(damaged)} damaged line(s) of {workdir}/metrics.jsonl")
  return rows


def _read(workdir):
  """The rows of metrics.jsonl, and the damaged lines."""
  path = workdir / "metrics.jsonl"
  try:
    *lines, last = path.read_bytes().split(b"\n") if path.exists() else [b""]
  except OSError as error:
    raise UserError(f"cannot read {path}: {error.strerror}") from error
  if _row(last) or not last.startswith(b"{"):  # else truncated by a kill
    lines.append(last)
  found = [(line, _row(line)) for line in lines if line.strip()]
  rows = [row for _, row in found if row]
  return rows, [line for line, row in found if not row]


def _row(line):
  """The row in a line; None if `MetricsLog` cannot have written it."""
  try:
    row = json.loads(line)
    is_row = (
      row["kind"] in ("train", "eval")
      and type(row["step"]) is int
      and row["seconds"] is not None
      and all(_is_number(row[name]) for name in row if name != "kind")
    )
  except (ValueError, LookupError, TypeError, RecursionError):
    return None
  return row if is_row else None


def _is_number(value):
  """Whether it is finite, or null in its place."""
  number = type(value) in (int, float) and -math.inf < value < math.inf
  return number or value is None


def _set_aside(workdir, damaged):
  if damaged:
    path = workdir / "metrics.damaged.jsonl"
    with open(path, "ab") as file:
      file.writelines(line + b"\n" for line in damaged)
    _warn(
      f"moved {len(damaged)} damaged line(s) of {workdir}/metrics.jsonl to"
      f" {path}"
    )


def _report_changes(workdir, start, found, saved):
  """Compares the rows with those of the checkpoint; older ones know less."""
  path = workdir / "metrics.jsonl"
  if found["rows"] != saved.get("rows", found["rows"]):
    _warn(
      f"{path} has {found['rows']} rows up to step {start}, but had"
      f" {saved['rows']} when that step was saved; the run goes on"
    )
  elif found["crc32"] != saved.get("crc32", found["crc32"]):
    _warn(
      f"{path} has changed: some of its rows up to step {start} are not those"
      " of when that step was saved; the run goes on"
    )


def _line(row):
  return json.dumps(row) + "\n"


def _checksum(lines, start=0):
  for line in lines:
    start = zlib.crc32(line.encode(), start)
  return start


def _warn(message):
  logging.getLogger(__name__).warning(message)


def _duration(seconds):
  minutes, seconds = divmod(round(seconds), 60)
  hours, minutes = divmod(minutes, 60)
  return f"{hours}h{minutes:02}m" if hours else f"{minutes}m{seconds:02}s"


def _continued(path, rows):
  whole_files.write_text(path, "".join(map(_line, rows)))
  return open(path, "a")


def _start_wandb(workdir, config):
  import wandb  # ty: ignore[import-not-found]

  name = workdir / "wandb_id.txt"
  if not name.exists():
    whole_files.write_text(name, uuid.uuid4().hex)
  return wandb.init(
    project=config.wandb,
    name=workdir.name,
    id=name.read_text(),
    resume="allow",
    dir=str(workdir),
    config=dataclasses.asdict(config),
  )
