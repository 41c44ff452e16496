"""Accuracy over many episodes, the same ones for every head.

  both           all queries, over all classes
  base, novel    queries of one kind, over the classes of that kind
  joint_base, joint_novel
                 queries of one kind, over all classes
  harmonic       harmonic mean of the two joint accuracies
  novel_to_base  novel queries that are answered with a base class
  base_to_novel  base queries that are answered with a novel class
  auroc, accuracy95, joint_auroc, joint_accuracy95
                 telling known queries from those of unknown classes: see
                 `unknown`

The unknown queries of an episode are those of the episode before it whose
classes are not among its own; metrics without any are left out. All are
computed per episode. Intervals are 95%: 1.96 standard errors over the episodes.
The interval of a difference between two heads is that of the paired
differences.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from fewshot import unknown
from fewshot.episodes import Episodes
from fewshot.heads import EpisodeNetwork

Accuracies = dict[str, np.ndarray]  # metric -> [e]

# Episodes computed at once: few enough for a CPU's cache.
_ON_CPU, _ELSEWHERE = 10, 50


def episode_metrics(
  novel_logits: Float[Array, "n q r"],
  base_logits: Float[Array, "m r"],
  base_label: Int[Array, " m"],
) -> dict[str, Float[Array, ""]]:
  """The metrics of one episode.

  Args:
    novel_logits: logits of the queries of the n novel classes.
    base_logits: logits of the base queries.
    base_label: labels of the base queries.
  """
  n, _, r = novel_logits.shape
  c = r - n
  # The overall winner is of the kind with the larger maximum.
  novel_right = novel_logits[..., c:].argmax(-1) == jnp.arange(n)[:, None]
  base_right = base_logits[:, :c].argmax(-1) == base_label
  novel_astray, base_kept = (
    logits[..., :c].max(-1) >= logits[..., c:].max(-1)
    for logits in (novel_logits, base_logits)
  )
  joint_novel = jnp.mean(novel_right & ~novel_astray)
  joint_base = jnp.mean(base_right & base_kept)
  total = joint_novel + joint_base
  num_novel, num_base = novel_right.size, base_right.size
  return {
    "both": (num_novel * joint_novel + num_base * joint_base)
    / (num_novel + num_base),
    "novel": jnp.mean(novel_right),
    "base": jnp.mean(base_right),
    "joint_base": joint_base,
    "joint_novel": joint_novel,
    "harmonic": 2 * joint_novel * joint_base / jnp.where(total > 0, total, 1),
    "novel_to_base": jnp.mean(novel_astray),
    "base_to_novel": jnp.mean(~base_kept),
  }


def evaluate(
  network: EpisodeNetwork,
  params: PyTree,
  novel: Float[Array, "a d"],
  base: Float[Array, "b d"],
  episodes: Episodes,
  num_shot: int,
  novel_bias: float = 0.0,
) -> Accuracies:
  """Every metric of every episode.

  Args:
    network: a head with its base weights.
    params: parameters of the network.
    novel: features that `support` and `query` of the episodes index.
    base: features that `base_query` indexes.
    episodes: from `episodes.sample`.
    num_shot: how many supports of each class to use, from the first.
    novel_bias: added to the logits of novel classes.
  """
  if not 1 <= num_shot <= episodes.support.shape[-1]:
    raise ValueError(
      f"num_shot={num_shot}, but the episodes have"
      f" {episodes.support.shape[-1]} supports of each class"
    )
  metrics = _evaluate(
    network, params, novel, base, episodes, num_shot, novel_bias
  )
  values = {name: np.asarray(v, np.float64) for name, v in metrics.items()}
  return {name: v for name, v in values.items() if not np.isnan(v).all()}


@functools.partial(jax.jit, static_argnums=0)
def _evaluate(network, params, novel, base, episodes, num_shot, novel_bias):
  def one(episode_and_before):
    episode, before = episode_and_before
    n, q = episode.query.shape
    strange = before.query.reshape(-1)
    query = jnp.concatenate(
      [
        novel[episode.query.reshape(-1)],
        base[episode.base_query],
        novel[strange],
      ]
    )
    is_used = jnp.arange(episode.support.shape[1]) < num_shot
    mask = jnp.broadcast_to(is_used[None], episode.support.shape)
    shown = jnp.ones(network.num_base, bool)
    logits = network.apply(
      {"params": params}, novel[episode.support], mask, query, shown
    )
    is_novel = jnp.arange(logits.shape[1]) >= logits.shape[1] - n
    logits += jnp.where(is_novel, novel_bias, 0.0)[None]
    ends = (n * q, len(query) - len(strange))
    of_novel, of_base, of_unknown = jnp.split(logits, ends)
    known = (of_novel.reshape(n, q, -1), of_base, episode.base_label)
    is_other = (before.classes[:, None] != episode.classes[None]).all(1)
    refused = unknown.episode_metrics(
      *known, of_unknown, jnp.repeat(is_other, q)
    )
    refused["threshold"] /= jnp.abs(params["scale"])
    return episode_metrics(*known) | refused

  on_cpu = jax.default_backend() == "cpu"
  batch_size = _ON_CPU if on_cpu else _ELSEWHERE
  before = jax.tree.map(lambda x: jnp.roll(x, 1, axis=0), episodes)
  return jax.lax.map(one, (episodes, before), batch_size=batch_size)


def calibrate(measure: Callable[[float], Accuracies], scale: float) -> float:
  """The bias of novel logits with the highest accuracy `both`.

  Args:
    measure: bias -> accuracies on classes held out of training.
    scale: scale of the logits; biases of up to +-0.2 times it are tried.
  """
  biases = scale * np.linspace(-0.2, 0.2, 41)
  return max(map(float, biases), key=lambda bias: measure(bias)["both"].mean())


def means(accuracies: Accuracies) -> dict[str, float]:
  """The mean of each metric over the episodes."""
  return {name: float(np.nanmean(x)) for name, x in accuracies.items()}


def summary(accuracies: Accuracies) -> dict[str, dict[str, float]]:
  """Mean and half the width of the 95% interval of each metric."""
  return {name: _interval(values) for name, values in accuracies.items()}


def paired(ours: Accuracies, theirs: Accuracies) -> dict[str, dict[str, float]]:
  """`summary` of the differences ours - theirs on the same episodes."""
  return {name: _interval(ours[name] - theirs[name]) for name in ours}


def _interval(values):
  values = values[~np.isnan(values)]
  return {
    "mean": float(values.mean()),
    "ci95": float(1.96 * values.std() / np.sqrt(len(values))),
  }
