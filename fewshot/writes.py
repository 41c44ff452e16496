"""The paper's Algorithm 1, writing supports to classes, as matrix products.

The weights of a cosine classifier, W [c+n d], are a memory that is read with a
feature: scores are RD(W, x). A support x of novel class n is written with the
feature as key and the class as value,

  W_nk = WR(W, x, e_n, p_w, p_e) = W + p_w e_n x^T - p_e W x x^T,

where W holds the base weights and zeros for the novel classes. (The paper's
listing has key and value the other way round; then p_e has no effect.) The
writes of all supports are combined in one of four ways:

  sum         the paper's: the sum of W_nk / K, so base rows count n times
  delta       W plus the sum of (W_nk - W) / K: erases n times as strongly
  projection  base rows lose their part in the span of all supports; where
              supports are similar, never more than once
  scan        one write after the other, the recurrent memory; order matters

Rows are not normalised here. `mask` is False where a class has fewer supports
than others.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from nam_jax.ops import recurrent

Base = Float[Array, "c d"]
Support = Float[Array, "n k d"]
Gate = Float[Array, "n k"]
Mask = Bool[Array, "n k"]
Rows = Float[Array, "r d"]

RIDGE = 0.1  # keeps the projection's inverse finite for equal supports


def write_sum(base: Base, x: Support, p_w: Gate, p_e: Gate, mask: Mask) -> Rows:
  """The paper's accumulation: sum over n, k of W_nk / K."""
  classes = jnp.maximum(jnp.sum(mask.any(axis=1), dtype=base.dtype), 1)
  p_w, p_e = _shares(p_w, mask), _shares(p_e, mask)
  kept = classes * base - _erased(base, x, p_e)
  return jnp.concatenate([kept, _averaged(x, p_w)])


def write_delta(
  base: Base, x: Support, p_w: Gate, p_e: Gate, mask: Mask
) -> Rows:
  """W + sum over n, k of (W_nk - W) / K."""
  p_w, p_e = _shares(p_w, mask), _shares(p_e, mask)
  kept = base - _erased(base, x, p_e)
  return jnp.concatenate([kept, _averaged(x, p_w)])


def write_projection(
  base: Base, x: Support, p_w: Gate, p_e: Gate, mask: Mask
) -> Rows:
  """base - base X^T D (X X^T + ridge)^-1 X, for all supports X at once.

  With more supports than features, (X X^T + ridge)^-1 X is computed as the
  equal X (X^T X + ridge)^-1, whose inverse is the smaller one.
  """
  flat = jnp.where(mask[..., None], x, 0).reshape(-1, x.shape[-1])
  shares = (base @ flat.T) * p_e.reshape(1, -1)
  rows, d = flat.shape
  if rows <= d:
    gram = flat @ flat.T + RIDGE * jnp.eye(rows, dtype=x.dtype)
    kept = base - (shares @ jnp.linalg.inv(gram)) @ flat
  else:
    gram = flat.T @ flat + RIDGE * jnp.eye(d, dtype=x.dtype)
    kept = base - (shares @ flat) @ jnp.linalg.inv(gram)
  return jnp.concatenate([kept, _averaged(x, _shares(p_w, mask))])


def write_scan(
  base: Base, x: Support, p_w: Gate, p_e: Gate, mask: Mask
) -> Rows:
  """One write after the other, class by class."""
  n, k, d = x.shape
  W = jnp.concatenate([base, jnp.zeros((n, d), base.dtype)])
  values = jnp.eye(n, W.shape[0], base.shape[0], dtype=x.dtype)
  keys, values, p_w, p_e, mask = (
    a.reshape(1, n * k, *a.shape[2:])
    for a in (x, jnp.repeat(values[:, None], k, axis=1), p_w, p_e, mask)
  )
  _, W = recurrent.memory_scan(
    keys[:, :, None],
    keys[:, :, None],
    values[:, :, None],
    p_w=p_w[:, :, None],
    p_e=p_e[:, :, None],
    initial_memory=W[None, None],
    mask=mask,
  )
  return W[0, 0]


WRITES = {
  "sum": write_sum,
  "delta": write_delta,
  "projection": write_projection,
  "scan": write_scan,
}


def class_means(x: Support, mask: Mask) -> Float[Array, "n d"]:
  """The mean support of each class."""
  return novel_rows(x, jnp.ones(mask.shape, x.dtype), mask)


def novel_rows(x: Support, p_w: Gate, mask: Mask) -> Float[Array, "n d"]:
  """Supports of each class times p_w / K: what is written to its row."""
  return _averaged(x, _shares(p_w, mask))


def remove_span(rows: Rows, base: Base, ridge: float) -> Rows:
  """rows minus their ridge regression on the rows of base.

  The counterpart of an erase: it removes from a novel class's row what it has
  in common with the base classes.
  """
  gram = base @ base.T + ridge * jnp.eye(base.shape[0], dtype=base.dtype)
  return rows - (rows @ base.T) @ jnp.linalg.inv(gram) @ base


def _shares(p, mask):
  """p / K at the supports that exist."""
  count = jnp.maximum(jnp.sum(mask, axis=1, keepdims=True), 1)
  return jnp.where(mask, p, 0) / count.astype(p.dtype)


def _erased(base, x, p_e):
  """sum over n, k of p_e (W x) x^T, for the base rows."""
  read = jnp.einsum("cd,nkd->cnk", base, x)
  return jnp.einsum("cnk,nk,nkd->cd", read, p_e, x)


def _averaged(x, p_w):
  """sum over k of p_w x: the novel rows."""
  return jnp.einsum("nk,nkd->nd", p_w, x)
