"""Heads: from base weights and supports to the weights of all classes.

Every head is a module with one call,

  head(base [c d], base_mask [c], support [n k d], support_mask [n k])
      -> Weights of c + n classes

and `Weights.logits(features, scale)`. Rows of base whose mask is False are
ignored (base classes that act as novel ones in training); their logits are
-inf. Stage 2 trains all parameters of a head, and `base` and the scale, which
belong to the `EpisodeNetwork` around it.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from flax import struct
from jaxtyping import Array, Bool, Float

from fewshot import writes
from fewshot.network import SCALE, cosines
from nam_jax import spelling
from nam_jax.models import options
from nam_jax.ops import normalize

Base = Float[Array, "c d"]
BaseMask = Bool[Array, " c"]
Support = Float[Array, "n k d"]
SupportMask = Bool[Array, "n k"]


class Weights(struct.PyTreeNode):
  """One row per class: base classes, then novel ones."""

  rows: Float[Array, "r d"]
  mask: Bool[Array, " r"]  # False at hidden classes
  is_distance: bool = struct.field(pytree_node=False, default=False)

  def logits(
    self, features: Float[Array, "q d"], scale: Float[Array, ""]
  ) -> Float[Array, "q r"]:
    """Scaled cosines or negative mean squared distances; -inf where hidden."""
    if self.is_distance:
      d = features.shape[-1]
      square = jnp.sum(jnp.square(self.rows), axis=-1)[None]
      product = jnp.einsum("qd,rd->qr", features, self.rows)
      own = jnp.sum(jnp.square(features), axis=-1, keepdims=True)
      scores = (2 * product - square - own) / d
    else:
      scores = cosines(features, self.rows)
    return jnp.where(self.mask[None], scale * scores, -jnp.inf)


class Cosine(nn.Module):
  """Class means of unit supports: the cosine classifier.

  Attributes:
    learn_scale: whether each feature of the means has a learned scale.
  """

  learn_scale: bool = True

  @nn.compact
  def __call__(
    self, base: Base, base_mask: BaseMask, support: Support, mask: SupportMask
  ) -> Weights:
    """Weights of all classes."""
    novel = writes.class_means(normalize.unit(support), mask)
    if self.learn_scale:
      novel *= self.param("average", nn.initializers.ones, novel.shape[-1:])[
        None
      ]
    return _unit_weights(base, base_mask, novel)


def _near_identity(key, shape, dtype=jnp.float32):
  noise = 1e-3 * jax.random.normal(key, shape, dtype)
  return jnp.eye(*shape, dtype=dtype) + noise


def _generated(module, base, base_mask, x):
  """Supports [n k d], each with the base weights that it attends to.

  The weight generator of Gidaris & Komodakis (2018): a class's weights are the
  mean of these. The parameters are those of the module.
  """
  c, d = base.shape
  query = nn.Dense(d, kernel_init=_near_identity, name="query")(x)
  init = nn.initializers.normal((2 / d) ** 0.5)
  keys = normalize.unit(module.param("keys", init, (c, d)))
  sharpness = module.param("sharpness", nn.initializers.constant(SCALE), ())
  logits = sharpness * jnp.einsum("nkd,cd->nkc", normalize.unit(query), keys)
  logits = jnp.where(base_mask[None, None], logits, -jnp.inf)
  attended = jax.nn.softmax(logits) @ normalize.unit(base)
  average, attention = (
    module.param(name, nn.initializers.ones, (d,))[None, None]
    for name in ("average", "attention")
  )
  return average * x + attention * attended


class AttentionGenerator(nn.Module):
  """Class means, and base weights that a support attends to."""

  @nn.compact
  def __call__(
    self, base: Base, base_mask: BaseMask, support: Support, mask: SupportMask
  ) -> Weights:
    """Weights of all classes."""
    x = _generated(self, base, base_mask, normalize.unit(support))
    return _unit_weights(base, base_mask, writes.class_means(x, mask))


class Prototypes(nn.Module):
  """Squared distances to class means; the rows of base are means too."""

  @nn.compact
  def __call__(
    self, base: Base, base_mask: BaseMask, support: Support, mask: SupportMask
  ) -> Weights:
    """Weights of all classes."""
    novel = writes.class_means(support, mask)
    rows, row_mask = _joined(base, base_mask, novel)
    return Weights(rows, row_mask, is_distance=True)


class NAM(nn.Module):
  """Writes supports to the classifier's weights as to a memory.

  Attributes:
    accumulate: how the writes are combined; a name from `writes.WRITES`.
    hidden: width of the hidden layer of the gates.
    two_sided: whether novel rows also lose a learned share of the part that
      base rows explain.
    gates_see_reads: whether the gates also see what the memory holds at the
      support (largest and mean cosine with base rows) and the support's cosine
      with its class.
    generator: whether novel rows also hold the base weights that supports
      attend to, as those of `AttentionGenerator`.
  """

  accumulate: str = "sum"
  hidden: int = 64
  two_sided: bool = False
  gates_see_reads: bool = False
  generator: bool = False

  def __post_init__(self):
    if self.accumulate not in writes.WRITES:
      message = spelling.unknown("accumulate", self.accumulate, writes.WRITES)
      raise ValueError(message)
    if self.generator and self.accumulate == "scan":
      raise ValueError("generator does not work with accumulate='scan'")
    super().__post_init__()

  @nn.compact
  def __call__(
    self, base: Base, base_mask: BaseMask, support: Support, mask: SupportMask
  ) -> Weights:
    """Weights of all classes."""
    base = normalize.unit(base)
    x = normalize.unit(support)
    p_w, p_e = self._gates(base, base_mask, support, mask)
    rows = writes.WRITES[self.accumulate](base, x, p_w, p_e, mask)
    if self.generator:  # sees the base rows before anything is erased
      written = _generated(self, base, base_mask, x)
      novel = writes.novel_rows(written, p_w, mask)
    else:
      novel = rows[base.shape[0] :]
    base = rows[: base.shape[0]]
    if self.two_sided:
      share = jax.nn.sigmoid(self.param("share", nn.initializers.zeros, ()))
      shown = jnp.where(base_mask[:, None], normalize.unit(base), 0)
      novel = normalize.unit(novel)
      apart = writes.remove_span(novel, shown, _SPAN_RIDGE)
      novel += share * (apart - novel)
    return _unit_weights(base, base_mask, novel)

  def _gates(self, base, base_mask, support, mask):
    """Write and erase probabilities [n k] of a two-layer network."""
    seen = nn.LayerNorm(use_bias=False, use_scale=False)(support)
    if self.gates_see_reads:
      x = normalize.unit(support)
      reads = jnp.einsum("nkd,cd->nkc", x, base)
      largest = jnp.max(reads, -1, initial=-1.0, where=base_mask[None, None])
      mean = jnp.mean(reads, -1, where=base_mask[None, None])
      means = normalize.unit(writes.class_means(x, mask))
      own = jnp.einsum("nkd,nd->nk", x, means)
      seen = jnp.concatenate(
        [seen, jnp.stack([largest, mean, own], axis=-1)], axis=-1
      )
    gates = nn.Dense(2, name="gates")(nn.relu(nn.Dense(self.hidden)(seen)))
    p_w, p_e = jnp.moveaxis(jax.nn.sigmoid(gates), -1, 0)
    return p_w, p_e


class Fixed(nn.Module):
  """NAM with the same gates for every support, so that nothing is trained.

  Attributes:
    erase: the erase probability; the write probability is 1.
    accumulate: how the writes are combined; a name from `writes.WRITES`.
  """

  erase: float = 0.5
  accumulate: str = "projection"

  @nn.compact
  def __call__(
    self, base: Base, base_mask: BaseMask, support: Support, mask: SupportMask
  ) -> Weights:
    """Weights of all classes."""
    ones = jnp.ones(mask.shape, support.dtype)
    base, x = normalize.unit(base), normalize.unit(support)
    write = writes.WRITES[self.accumulate]
    rows = write(base, x, ones, self.erase * ones, mask)
    c = base.shape[0]
    return _unit_weights(rows[:c], base_mask, rows[c:])


# Ridge of the regression of novel rows on base rows, which are correlated.
_SPAN_RIDGE = 0.3


class EpisodeNetwork(nn.Module):
  """A head, with the base weights and the scale that stage 2 trains.

  Attributes:
    head: the head.
    num_base: number of base classes.
    dropout_rate: applied to the features in training.
  """

  head: nn.Module
  num_base: int
  dropout_rate: float = 0.0

  @nn.compact
  def __call__(
    self,
    support: Support,
    support_mask: SupportMask,
    query: Float[Array, "q d"],
    base_mask: BaseMask,
    *,
    train: bool = False,
  ) -> Float[Array, "q r"]:
    """Logits of the base classes, then of the novel ones."""
    drop = nn.Dropout(self.dropout_rate, deterministic=not train)
    init = nn.initializers.normal((2 / support.shape[-1]) ** 0.5)
    base = self.param("base", init, (self.num_base, support.shape[-1]))
    scale = self.param("scale", nn.initializers.constant(SCALE), ())
    weights = self.head(base, base_mask, drop(support), support_mask)
    # A negative scale would prefer the farthest class; training may cross 0.
    return weights.logits(drop(query), jnp.abs(scale))


HEADS: dict[str, Callable[..., nn.Module]] = {
  "cosine": lambda: Cosine(learn_scale=False),
  "cosine_tuned": Cosine,
  "attention": AttentionGenerator,
  "prototypes": Prototypes,
  "nam": NAM,
  "fixed": Fixed,
}
UNTUNED = ("cosine", "fixed")  # not trained in stage 2
# Heads whose row of a class depends on the supports of that class alone.
INDEPENDENT = ("cosine", "cosine_tuned", "attention", "prototypes")


def mean_direction(features: Float[Array, "k d"]) -> Float[Array, " d"]:
  """The mean of unit vectors: the row of a class without any erasing."""
  mask = jnp.ones((1, len(features)), bool)
  return writes.class_means(normalize.unit(jnp.asarray(features))[None], mask)[
    0
  ]


def make_head(kind: str, **fields: Any) -> nn.Module:
  """Makes the head of this kind."""
  if kind not in HEADS:
    raise ValueError(spelling.unknown("head", kind, HEADS))
  options.check(f"field of {kind}", fields, options.arguments(HEADS[kind]))
  return HEADS[kind](**fields)


def _unit_weights(base, base_mask, novel):
  rows, mask = _joined(base, base_mask, novel)
  return Weights(normalize.unit(rows), mask)


def _joined(base, base_mask, novel):
  shown = jnp.ones(novel.shape[:1], bool)
  return (
    jnp.concatenate([base, novel]),
    jnp.concatenate([base_mask, shown]),
  )
