"""Refusing what is none of the classes: scores, thresholds and metrics.

The score of an input is its largest logit over the scale: the cosine with the
nearest class. An input is refused if its score is below a threshold, which is
chosen so that a share of the known inputs, the recall, is accepted.

  auroc       how likely a known input scores higher than an unknown one
  accuracy95  right answers at the threshold with a recall of 95%: the mean of
              known inputs that are accepted with their class, and of unknown
              ones that are refused
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

RECALL = 0.95
# Examples that are left out, at most; each is scored on its own.
_MOST_LEFT_OUT = 200


class Calibration(NamedTuple):
  """A threshold, and what it does with the inputs it was chosen with."""

  threshold: float
  recall: float  # share of known inputs that are accepted
  refused: float  # share of unknown inputs that are refused
  auroc: float
  source: str  # what the inputs were


def auroc(
  known: Float[Array, " a"],
  unknown: Float[Array, " b"],
  counts: Bool[Array, " b"],
) -> Float[Array, ""]:
  """Area under the curve; `counts` is False at inputs to ignore."""
  higher = jnp.mean(known[:, None] > unknown[None], axis=0)
  equal = jnp.mean(known[:, None] == unknown[None], axis=0)
  return jnp.mean(higher + equal / 2, where=counts)


def threshold_at(known: Float[Array, " a"], recall: float) -> Float[Array, ""]:
  """The largest score of `known` that accepts at least this share of them."""
  lost = int((1 - recall) * known.shape[0] + 1e-6)
  return jnp.sort(known)[lost]


def accuracy95(
  known: Float[Array, " a"],
  is_right: Bool[Array, " a"],
  unknown: Float[Array, " b"],
  counts: Bool[Array, " b"],
) -> Float[Array, ""]:
  """Right answers of both kinds at a recall of 95%."""
  least = threshold_at(known, RECALL)
  refused = jnp.mean(unknown < least, where=counts)
  return (jnp.mean(is_right & (known >= least)) + refused) / 2


def episode_metrics(
  novel_logits: Float[Array, "n q r"],
  base_logits: Float[Array, "m r"],
  base_label: Array,
  unknown_logits: Float[Array, "u r"],
  counts: Bool[Array, " u"],
) -> dict[str, Float[Array, ""]]:
  """Metrics of one episode, NaN if no unknown query counts.

  First those of the novel classes alone, then over all classes, where queries
  of base classes are known, too.
  """
  n, q, r = novel_logits.shape
  label = jnp.repeat(jnp.arange(n), q)
  novel = novel_logits.reshape(n * q, r)
  alone, unknown = (x[:, r - n :] for x in (novel, unknown_logits))
  joint = jnp.concatenate([novel, base_logits])
  joint_label = jnp.concatenate([r - n + label, base_label])
  cases = {
    "": (alone, label, unknown),
    "joint_": (joint, joint_label, unknown_logits),
  }
  found = {}
  for kind, (logits, labels, others) in cases.items():
    scores, strange = logits.max(-1), others.max(-1)
    is_right = logits.argmax(-1) == labels
    found[f"{kind}auroc"] = auroc(scores, strange, counts)
    found[f"{kind}accuracy95"] = accuracy95(scores, is_right, strange, counts)
  found["threshold"] = threshold_at(joint.max(-1), RECALL)
  return found


def calibrate(
  known: np.ndarray, unknown: np.ndarray, recall: float, source: str
) -> Calibration:
  """The threshold with this recall on the scores of known inputs."""
  if not 0 < recall <= 1:
    raise ValueError(f"recall must lie in (0, 1], got {recall}")
  known, unknown = (np.asarray(x, np.float32) for x in (known, unknown))
  threshold = float(threshold_at(jnp.asarray(known), recall))
  area = auroc(*map(jnp.asarray, (known, unknown, np.ones(len(unknown), bool))))
  return Calibration(
    threshold,
    float(np.mean(known >= threshold)),
    float(np.mean(unknown < threshold)),
    float(area),
    source,
  )


def leave_one_out(
  added: Mapping[str, np.ndarray],
  score: Callable[[str, np.ndarray, np.ndarray], tuple[float, float]],
) -> tuple[np.ndarray, np.ndarray]:
  """Scores of examples as if they were new: known, and unknown.

  Args:
    added: examples [k d] of each class; at least two for those that count.
    score: (name, example [1 d], the others [k-1 d]) -> its score if its class
      has the others, and its score without its class.
  """
  places = [
    (name, number)
    for name, rows in added.items()
    if len(rows) > 1
    for number in range(len(rows))
  ]
  step = -(-len(places) // _MOST_LEFT_OUT) or 1
  found = [
    score(name, added[name][[number]], np.delete(added[name], number, axis=0))
    for name, number in places[::step]
  ]
  known, unknown = zip(*found, strict=True) if found else ((), ())
  return np.array(known), np.array(unknown)
