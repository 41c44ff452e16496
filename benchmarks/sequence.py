"""Attention and memory over whole sequences, from short to long ones.

There are two groups, for what sees all tokens and what sees only the past:
candidates are compared within a group.
"""

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import nam_jax
from benchmarks import candidate, peers, plain
from benchmarks.candidate import Candidate, Result, Settings

TASKS = ("forward", "forward+gradient")
# Enough seconds per run where no goal concerns longer sequences.
LIMITS = {"torch loop": 2.0}


class Inputs(NamedTuple):
  """Random heads with unit queries and keys, and gates; all numpy."""

  q: np.ndarray  # [b s h k]
  k: np.ndarray  # [b s h k]
  v: np.ndarray  # [b s h v]
  p_r: np.ndarray  # [b s h]
  p_w: np.ndarray  # [b s h]
  p_e: np.ndarray  # [b s h]


def make_inputs(b: int, s: int, h: int, d: int) -> Inputs:
  """Inputs, the same for every form."""
  rng = np.random.default_rng(0)
  qkv = rng.standard_normal((3, b, s, h, d), np.float32)
  qkv[:2] /= np.linalg.norm(qkv[:2], axis=-1, keepdims=True)
  return Inputs(*qkv, *rng.random((3, b, s, h), np.float32))


def plain_scan(q, k, v, p_r, p_w, p_e):
  """RD and WR in a `lax.scan`, with an automatic gradient."""
  empty = jnp.zeros((q.shape[0], *q.shape[2:], q.shape[-1]), q.dtype)
  return plain.memory_scan(q, k, v, p_r, p_w, p_e, empty)[0]


def memory_scan(q, k, v, p_r, p_w, p_e):
  """Token by token, with a hand-written gradient."""
  return nam_jax.memory_scan(q, k, v, p_r=p_r, p_w=p_w, p_e=p_e)[0]


def memory_chunked(q, k, v, p_r, p_w, p_e):
  """By blocks of tokens, as matrix products."""
  return nam_jax.memory_chunked(q, k, v, p_r=p_r, p_w=p_w, p_e=p_e)[0]


class Form(NamedTuple):
  """A form of attention; `gated` ones take the gates too."""

  function: Callable
  gated: bool = False


BIDIRECTIONAL = {
  "softmax": Form(jax.nn.dot_product_attention),
  "elu linear": Form(nam_jax.linear_attention),
  "nam": Form(nam_jax.outer_product_attention),
}
CAUSAL = {
  "plain scan": Form(plain_scan, gated=True),
  "memory_scan": Form(memory_scan, gated=True),
  "memory_chunked": Form(memory_chunked, gated=True),
  "causal nam": Form(
    functools.partial(nam_jax.outer_product_attention, causal=True)
  ),
}


class Forecast:
  """Predicts the time of a candidate from those of shorter sequences."""

  def __init__(self):
    self._known = {}

  def learn(self, results: Sequence[Result]) -> None:
    """Remembers what was measured."""
    for r in results:
      if r.seconds is not None:
        self._known.setdefault((r.task, r.name), []).append((r.size, r.seconds))

  def seconds(self, task: str, name: str, size: int) -> float:
    """The time of one run; 0 if nothing is known."""
    known = self._known.get((task, name), [])
    if not known:
      return 0.0
    last, seconds = known[-1]
    power = 2.0
    if len(known) > 1:
      before, earlier = known[-2]
      power = math.log(seconds / earlier) / math.log(last / before)
      power = min(max(power, 1.0), 2.0)
    return seconds * (size / last) ** power


def bidirectional(settings: Settings) -> Iterator[list[Result]]:
  """Softmax, elu linear and NAM attention."""
  yield from _sweep("bidirectional", BIDIRECTIONAL, None, settings)


def causal(settings: Settings) -> Iterator[list[Result]]:
  """The forms of a memory that is written as it is read, and PyTorch's."""
  yield from _sweep("causal", CAUSAL, peers.sequence_candidates, settings)


def _sweep(group, forms, others, settings):
  """One race per size and task; what would take too long is skipped."""
  forecast = Forecast()
  for size in sorted(settings.sizes):
    b, h, d = settings.heads
    inputs = make_inputs(b, size, h, d)
    for task in TASKS:
      makers = {
        name: functools.partial(_compiled, form, task, inputs)
        for name, form in forms.items()
      }
      if others is not None:
        makers |= others(task, inputs)
      racing, skipped = {}, []
      for name, make in makers.items():
        seconds = forecast.seconds(task, name, size)
        limit = min(settings.limit, LIMITS.get(name, settings.limit))
        if seconds > limit:
          why = f"would take {seconds:.1f} s per run, the limit is {limit:g} s"
          skipped.append(Result(group, task, size, name, skipped=why))
        else:
          racing[name] = make()
      results = candidate.measure(group, task, size, racing, settings)
      forecast.learn(results)
      yield results + skipped


def _compiled(form: Form, task: str, inputs: Inputs) -> Candidate:
  args = [jnp.asarray(a) for a in (inputs if form.gated else inputs[:3])]
  if task == "forward":
    return candidate.forward(form.function, *args)
  return candidate.with_gradient(form.function, jnp.asarray(inputs.v), *args)
