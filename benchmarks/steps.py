"""Whole steps: training on the Long Range Arena, episodes, streams."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import nam_jax
from benchmarks import candidate, lra_step
from benchmarks.candidate import Candidate, Result, Settings
from fewshot import episodes, evaluate, heads

LRA_BATCH = 2


def lra(settings: Settings) -> Iterator[list[Result]]:
  """A training step of the benchmark's network with each attention."""
  for file, length in settings.lra:
    racing = {
      name: lra_step.make_step(file, length, name, LRA_BATCH)
      for name in settings.attentions
    }
    task = f"{file}, training step"
    yield candidate.measure("lra", task, length, racing, settings)


def fewshot(settings: Settings) -> Iterator[list[Result]]:
  """Few-shot episodes, all at once, and one by a loop over its samples.

  The loop's size is 1: compare the episodes per second.
  """
  count, task = settings.episodes, "evaluation"
  together, loop = map(Candidate, episode_runs(count))
  results = candidate.measure(
    "fewshot",
    task,
    count,
    {"one by loop": loop, "together": together},
    settings,
  )
  yield [results[0]._replace(size=1), results[1]]


def episode_runs(
  count: int,
) -> tuple[Callable[[], Any], Callable[[], Any]]:
  """Two functions: count episodes at once; one by a loop over its samples.

  64 + 5 classes, 25 supports and 150 queries of 512 features.
  """
  rng, size = np.random.default_rng(0), episodes.Size(5, 5, 15, 75)
  novel, base = (
    jnp.asarray(rng.standard_normal((rows, 512), np.float32))
    for rows in (800, 1280)
  )
  tables = [
    episodes.ByClass(
      np.arange(c * m, dtype=np.int32).reshape(c, m), np.full(c, m, np.int32)
    )
    for c, m in ((20, 40), (64, 20))
  ]
  drawn = episodes.sample(0, *tables, size, count)
  net = heads.EpisodeNetwork(heads.make_head("nam"), 64)
  params = net.init(
    jax.random.key(0),
    jnp.zeros((1, 1, 512)),
    jnp.ones((1, 1), bool),
    jnp.zeros((1, 512)),
    jnp.ones(64, bool),
  )["params"]
  unit, read, write = map(jax.jit, (nam_jax.unit, nam_jax.read, nam_jax.write))
  W = jnp.concatenate([params["base"], jnp.zeros((5, 512))])

  def loop():
    """The first episode; its gates are constant, so it does less."""
    total = jnp.zeros_like(W)
    for n, rows in enumerate(drawn.support[0]):
      value = jnp.zeros(69).at[64 + n].set(1.0)
      for row in rows:
        total += write(W, unit(novel[row]), value, 0.5, 0.5) / 5
    total = unit(total)
    queries = [novel[row] for row in drawn.query[0].ravel()]
    queries += [base[row] for row in drawn.base_query[0]]
    return [jnp.argmax(read(total, unit(query))) for query in queries]

  def together():
    return evaluate.evaluate(net, params, novel, base, drawn, 5)

  return together, loop


def streaming(settings: Settings) -> Iterator[list[Result]]:
  """Tokens one by one through causal NAM layers, each with the last memory."""
  _, h, d = settings.heads
  rng = np.random.default_rng(0)
  tokens = [
    jnp.asarray(rng.standard_normal((1, 1, h * d), np.float32))
    for _ in range(settings.tokens)
  ]
  racing = {
    mode: _stream(
      nam_jax.NAMAttention(h, mode=mode), list(tokens), (1, h, d, d)
    )
    for mode in ("causal", "erase")
  }
  yield candidate.measure(
    "streaming", "token by token", settings.tokens, racing, settings
  )


def _stream(layer, tokens, shape):
  params = layer.init(jax.random.key(0), tokens[0])

  def step(params, x, memory):
    return layer.apply(params, x, memory, method="continue_from")

  empty = jnp.zeros(shape)
  one = candidate.forward(step, params, tokens[0], empty)
  compiled = jax.jit(step)

  def run():
    memory = empty
    for x in tokens:
      y, memory = compiled(params, x, memory)
    return y, memory

  return one._replace(run=run, flops=None)  # those were of one token
