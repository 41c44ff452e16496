"""The rules of the delta-rule family as settings of `memory`, and their races.

The peer is `jla.ops.chunked` of the package jax-linear-attention, where it is
installed. Its rules have other inputs in another order, but the same results.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

import nam_jax
from benchmarks import candidate, sequence
from benchmarks.candidate import Candidate, Result

try:
  from jla.ops import chunked as peer
except ImportError:
  peer = None

Shape = tuple[int, int, int, int]  # batch, heads, tokens, width
SHAPES: tuple[Shape, ...] = (
  (2, 4, 1024, 64),
  (2, 4, 2048, 64),
  (1, 4, 4096, 64),
  (2, 8, 1024, 16),
  (1, 4, 2048, 128),
)
FORMS = {
  "memory": nam_jax.memory,
  "memory_scan": nam_jax.memory_scan,
  "memory_chunked": nam_jax.memory_chunked,
}


class Rule(NamedTuple):
  """A member of the family; it has the peer's name."""

  inputs: tuple[str, ...]  # after q, k and v, in the peer's order
  gates: Mapping[str, str]  # our argument -> its input


_BETA = {"p_w": "beta", "p_e": "beta"}
PLAIN = "delta_rule"
RULES = {
  PLAIN: Rule(("beta",), _BETA),
  "gated_delta_rule": Rule(("decay", "beta"), _BETA | {"log_decay": "decay"}),
  "kda": Rule(
    ("channel_decay", "beta"), _BETA | {"log_decay": "channel_decay"}
  ),
  "gdn2": Rule(
    ("channel_decay", "erase", "write"),
    {"p_w": "write", "p_e": "erase", "log_decay": "channel_decay"},
  ),
}


def make_inputs(shape: Shape) -> dict[str, np.ndarray]:
  """Unit queries and keys, values, and gates for all rules, [b s h ...]."""
  b, h, s, d = shape
  q, k, v, _, beta, _ = sequence.make_inputs(b, s, h, d)
  rng = np.random.default_rng(1)
  decay = rng.uniform(-0.1, 0, (b, s, h))
  channel_decay = rng.uniform(-0.1, 0, (b, s, h, d))
  erase, write = rng.random((2, b, s, h, d))
  made = {"decay": decay, "channel_decay": channel_decay}
  made |= {"erase": erase, "write": write}
  made = {name: array.astype(np.float32) for name, array in made.items()}
  return {"q": q, "k": k, "v": v, "beta": beta} | made


def make_candidates(
  name: str, inputs: Mapping[str, np.ndarray]
) -> dict[str, Candidate]:
  """The peer, if it is there, and our forms of a rule."""
  rule = RULES[name]
  args = [jnp.asarray(inputs[n]) for n in ("q", "k", "v", *rule.inputs)]
  functions = {
    form: functools.partial(ours, function, rule)
    for form, function in FORMS.items()
  }
  if peer is not None:
    functions = {"peer": functools.partial(theirs, name)} | functions
  return {
    form: candidate.with_gradient(function, args[2], *args)
    for form, function in functions.items()
  }


def ours(form: Callable, rule: Rule, q, k, v, *inputs):
  """The outputs of one of our forms."""
  given = dict(zip(rule.inputs, inputs, strict=True))
  gates = {argument: given[name] for argument, name in rule.gates.items()}
  return form(q, k, v, **gates)[0]


def theirs(name: str, q, k, v, *inputs):
  """The outputs of the peer."""
  return getattr(peer, name)(q, k, v, *inputs, scale=1.0)[0]


def race(
  shape: Shape, names: Sequence[str], rounds: int
) -> dict[str, list[Result]]:
  """One race of everything: rule -> results."""
  inputs = make_inputs(shape)
  made = {name: make_candidates(name, inputs) for name in names}
  racing = {
    f"{name}, {form}": compiled
    for name, candidates in made.items()
    for form, compiled in candidates.items()
  }
  # Nobody leaves early: who runs more often has the faster fastest round.
  settings = candidate.Settings(rounds=rounds, seconds=float("inf"))
  results = iter(candidate.measure("family", "", shape[2], racing, settings))
  return {
    name: [
      next(results)._replace(task=title(name, shape), name=form)
      for form in candidates
    ]
    for name, candidates in made.items()
  }


def title(rule: str, shape: Shape) -> str:
  """For instance "kda, 1x4x2048x128"."""
  return f"{rule}, {times(shape)}"


def times(shape: Sequence[int]) -> str:
  """For instance "1x4x2048x128"."""
  return "x".join(map(str, shape))
