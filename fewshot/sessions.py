"""Classes that arrive in sessions: few-shot class-incremental learning.

After the training on the base classes, every session brings new classes with a
few examples each, and the classifier must then name the base classes and all
classes so far. The features stay, and nothing is trained any more: each head
writes the examples of all sessions so far.

  all, base, new  accuracy after each session, on queries of all classes so far,
                  of the base classes and of the new ones; over all of these
                  classes
  average, last   of `all`, over the sessions with the first one, before any new
                  class, and after the last
  forgetting      accuracy of the classes of a session right after it less that
                  after the last one, averaged over base classes and sessions
                  by their number of classes

Classes come in a random order, the same for every head; several rounds have
their own orders and examples, and intervals are over the rounds.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from data_files.errors import DataError
from fewshot import class_table, evaluate
from fewshot.config import SessionConfig
from fewshot.data.dataset import Split
from fewshot.stage1 import Features
from fewshot.stage2 import TrainedHead

_SEED = 20  # apart from the episodes of the same seed


class Round(NamedTuple):
  """The classes of all sessions in their order, with rows of their split."""

  support: np.ndarray  # [n k]
  query: np.ndarray  # [n q]


def check(config: SessionConfig, novel: Split) -> None:
  """Raises `DataError` if there are too few classes or images."""
  classes, images = config.num_sessions * config.num_way, config.num_shot + 1
  if len(novel.names) < classes or novel.counts().min() < images:
    raise DataError(
      f"{config.num_sessions} sessions of {config.num_way} classes with"
      f" {config.num_shot} examples and a query each need {classes} classes of"
      f" {images} images, but there are {len(novel.names)} of"
      f" {novel.counts().min()} or more (--config.sessions)"
    )


def draw(config: SessionConfig, novel: Split, seed: int) -> list[Round]:
  """The rounds; queries are what the examples leave, equally many of each."""
  rows, rounds = novel.rows_by_class(), []
  queries = min(config.num_query, novel.counts().min() - config.num_shot)
  for number in range(config.num_rounds):
    rng = np.random.default_rng([_SEED, seed, number])
    order = rng.permutation(len(rows))
    order = order[: config.num_sessions * config.num_way]
    drawn = np.stack(
      [rng.permutation(rows[c])[: config.num_shot + queries] for c in order]
    )
    rounds.append(
      Round(drawn[:, : config.num_shot], drawn[:, config.num_shot :])
    )
  return rounds


def measure(
  config: SessionConfig,
  head: TrainedHead,
  features: Features,
  base_test: Split,
  rounds: list[Round],
) -> dict[str, np.ndarray]:
  """Each metric of each round: [rounds sessions+1] or [rounds]."""
  found = [
    _measure_round(config, head, features, base_test, one) for one in rounds
  ]
  return {name: np.array([one[name] for one in found]) for name in found[0]}


def _measure_round(config, head, features, base_test, one):
  n, q = one.query.shape
  c = len(base_test.names)
  queries = np.concatenate(
    [features.base_test, features.test[one.query.reshape(-1)]]
  )
  labels = np.concatenate([base_test.labels, c + np.repeat(np.arange(n), q)])
  # Session of each query, 0 for base classes.
  arrival = np.concatenate(
    [
      np.zeros(len(base_test.labels), int),
      1 + np.repeat(np.arange(n) // config.num_way, q),
    ]
  )
  support = features.test[one.support]
  answers = functools.partial(
    _answers, head.network.head, head.params, head.novel_bias, support, queries
  )
  right = []  # by session, right answers of the base classes and each session
  for session in range(config.num_sessions + 1):
    is_known = np.arange(n) < session * config.num_way
    is_right = np.asarray(answers(is_known)) == labels
    right.append(
      [is_right[arrival == s].mean() for s in range(config.num_sessions + 1)]
    )
  return _metrics(np.array(right), c, config.num_way)


def _metrics(right, num_base, num_way):
  """From accuracies [after session, of the classes of a session]."""
  last = len(right) - 1
  weights = np.array([num_base, *[num_way] * last], float)
  shares = np.tril(np.ones_like(right)) * weights
  everything = (right * shares).sum(1) / shares.sum(1)
  new = [0.0, *((right[s, 1 : s + 1]).mean() for s in range(1, last + 1))]
  lost = np.diagonal(right) - right[last]
  return {
    "all": everything,
    "base": right[:, 0],
    "new": np.array(new),
    "average": everything.mean(),
    "last": everything[-1],
    "forgetting": (lost * weights)[:-1].sum() / weights[:-1].sum(),
  }


@functools.partial(jax.jit, static_argnums=0)
def _answers(head, params, novel_bias, support, queries, is_known):
  """The class of each query, among base classes and those that are known."""
  c = params["base"].shape[0]
  mask = jnp.broadcast_to(is_known[:, None], support.shape[:2])
  weights = class_table.write(head, params, jnp.ones(c, bool), support, mask)
  logits = weights.logits(queries, jnp.abs(params["scale"]))
  is_novel = jnp.arange(logits.shape[1]) >= c
  return jnp.argmax(logits + jnp.where(is_novel, novel_bias, 0.0)[None], -1)


def results(
  config: SessionConfig,
  found: dict[str, dict[str, np.ndarray]],
  compared_with: str | None,
) -> dict[str, Any]:
  """What results.json keeps: by head, and compared with one of them."""
  single = ("average", "last", "forgetting")
  heads = {}
  for label, metrics in found.items():
    ours = {name: metrics[name] for name in single}
    other = None if label == compared_with else found.get(compared_with)
    theirs = other and {name: other[name] for name in single}
    heads[label] = {
      **{
        name: metrics[name].mean(axis=0).tolist()
        for name in ("all", "base", "new")
      },
      **evaluate.summary(ours),
      "compared_with": compared_with if theirs else None,
      "difference": evaluate.paired(ours, theirs) if theirs else {},
    }
  return {**dataclasses.asdict(config), "heads": heads}
