"""Ends a run when it no longer gets better."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from nam_jax.training.config import TrainConfig


def is_over(config: TrainConfig, history: Iterable[Mapping[str, Any]]) -> bool:
  """Whether the last `patience` evaluations brought no new best.

  The rows alone decide, so a run that was stopped ends where it would have.

  Args:
    config: says what counts as better, and how long to wait.
    history: the rows of metrics.jsonl.
  """
  sign = 1 if config.selection_mode == "max" else -1
  enough = sign * config.patience_at if config.patience_at else -math.inf
  best, waited = -math.inf, 0
  for row in history:
    if row["kind"] != "eval" or row["step"] < config.patience_from:
      continue
    value = row.get(watched(config))
    score = -math.inf if value is None else sign * value
    if score < enough:
      continue
    waited = 0 if score > best else waited + 1
    best = max(best, score)
  return 0 < config.patience <= waited


def watched(config: TrainConfig) -> str:
  """The metric that must get better."""
  return config.patience_metric or config.selection_metric
