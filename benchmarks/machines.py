"""Recurrent layers: forward and gradient, against plain scans and PyTorch.

A plain scan is the same layer with a `lax.scan` over its equations and an
automatic gradient; for DNC and LSTM, `nn.RNN` over a cell (flax's own LSTM).
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import jax
import numpy as np
from flax import linen as nn

import nam_jax
from benchmarks import candidate, peers, plain
from benchmarks.candidate import Result, Settings
from nam_jax.ops import addressing, lsam, tape

TASK = "forward+gradient"
HEADS = 4


class Machine(NamedTuple):
  """A layer, and the layer that is its plain scan if traced in `context`."""

  layer: nn.Module
  plain: nn.Module
  context: Callable[[], Any] = contextlib.nullcontext


def replaced(module, *names: str) -> Callable[[], Any]:
  """A context in which fast functions of a module are their plain twins."""
  twins = {name: getattr(plain, name) for name in names}
  return lambda: mock.patch.multiple(module, **twins)


plain_addressing = replaced(
  addressing,
  "content_weighting",
  "allocation_weighting",
  "update_and_follow",
  "read",
)


def make_machines(width: int) -> dict[str, Machine]:
  """The layers of a width, by name."""
  long_short = nam_jax.LSAM(features=width, num_heads=HEADS)
  turing = nam_jax.NAMTuringMachine(num_heads=HEADS)
  computer = nam_jax.DNCCell(features=width, controller_features=width)
  return {
    "lsam": Machine(long_short, long_short, replaced(lsam, "lsam_scan")),
    "nam_tm": Machine(turing, turing, replaced(tape, "tape_scan")),
    "dnc": Machine(nam_jax.DNC(), nn.RNN(computer), plain_addressing),
    "lstm": Machine(
      nam_jax.LSTM(features=width), nn.RNN(nn.OptimizedLSTMCell(width))
    ),
  }


def machines(settings: Settings) -> Iterator[list[Result]]:
  """One race for each machine."""
  b, s, width = settings.machine
  x, seed = np.random.default_rng(0).standard_normal(
    (2, b, s, width), np.float32
  )
  for name, machine in make_machines(width).items():
    racing = make_candidates(name, machine, x, seed)
    yield candidate.measure("machines", TASK, s, racing, settings)


def make_candidates(
  name: str, machine: Machine, x: np.ndarray, seed: np.ndarray
) -> dict[str, candidate.Candidate]:
  """The machine as a plain scan, as it is, and in PyTorch.

  Args:
    name: the machine's name.
    machine: what runs.
    x: its inputs [b s d].
    seed: the gradient of its outputs [b s d].
  """
  with machine.context():
    slow, _ = layer_candidate(machine.plain, x, seed)
  fast, params = layer_candidate(machine.layer, x, seed)
  racing = {f"{name}, plain scan": slow, name: fast}
  return racing | peers.machine_candidates(name, params, x, seed)


def layer_candidate(
  layer: nn.Module, x: np.ndarray, seed: np.ndarray
) -> tuple[candidate.Candidate, Any]:
  """The layer with new parameters, and those; x and seed are as above."""
  params = jax.jit(layer.init)(jax.random.key(0), x)["params"]

  def run(params, x):
    outputs = layer.apply({"params": params}, x)
    return outputs[0] if isinstance(outputs, tuple) else outputs

  return candidate.with_gradient(run, seed, params, x), params
