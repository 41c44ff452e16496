"""The rows of a classifier's weights, with room for more classes.

The room doubles when it is full, and numbers of images and queries are rounded
up to powers of two, so that few programs are compiled however many classes
come and go.
"""

import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from fewshot import heads
from nam_jax.training import row_order

_LEAST_ROOM = 8
_QUERIES_AT_ONCE = 256


class ClassTable:
  """Writes classes with a head, and scores features."""

  def __init__(
    self,
    kind: str,
    head: nn.Module,
    params: Mapping[str, Any],
    shown: np.ndarray,
    added: Mapping[str, np.ndarray],
  ):
    """Writes all classes.

    Args:
      kind: kind of the head.
      head: from `heads.make_head`.
      params: parameters of the `EpisodeNetwork`.
      shown: which base classes there are, bool [c].
      added: features [k d] of the other classes, by name.
    """
    self._write = functools.partial(write, head)
    self._params = params
    self._shown = shown
    self._is_independent = kind in heads.INDEPENDENT
    self._slots: dict[str, int] = {}
    self._weights = self._empty(_rounded(len(added), _LEAST_ROOM))
    if self._is_independent:
      for name, features in added.items():
        self.put(name, features)
    elif added:
      self._slots = {name: slot for slot, name in enumerate(added)}
      support, mask = _padded(list(added.values()), self._room())
      self._weights = self._write(params, shown, support, mask)

  def put(self, name: str, features: np.ndarray) -> bool:
    """Writes a class, or writes it again; False: the head needs all of them.

    Where a row depends on the supports of its class alone, the others stay.
    """
    if not self._is_independent:
      return False
    if name not in self._slots:
      if len(self._slots) == self._room():
        self._grow()
      free = set(range(self._room())).difference(self._slots.values())
      self._slots[name] = min(free)
    support, mask = _padded([features], 1)
    written = self._write(self._params, self._shown, support, mask)
    row = len(self._shown) + self._slots[name]
    self._weights = _set(self._weights, row, written.rows[-1], True)
    return True

  def drop(self, name: str) -> bool:
    """Erases a class; False: the head needs all of them."""
    if not self._is_independent:
      return False
    row = len(self._shown) + self._slots.pop(name)
    zero = jnp.zeros_like(self._weights.rows[row])
    self._weights = _set(self._weights, row, zero, False)
    return True

  def rename(self, old: str, new: str) -> None:
    """Gives a class another name."""
    self._slots[new] = self._slots.pop(old)

  def logits(self, features: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Logits [q c+n]: base classes, then those with these names."""
    number = min(_rounded(len(features), 1), _QUERIES_AT_ONCE)
    scale = self._params["scale"]
    found = [
      np.asarray(_logits(self._weights, scale, features[rows]))
      for rows in row_order.in_order(len(features), number)
    ]
    base = len(self._shown)
    columns = [*range(base), *(base + self._slots[name] for name in names)]
    return np.concatenate(found)[: len(features), columns]

  def _room(self) -> int:
    return len(self._weights.rows) - len(self._shown)

  def _empty(self, room: int) -> heads.Weights:
    d = self._params["base"].shape[1]
    support, mask = np.zeros((room, 1, d), np.float32), np.zeros((room, 1))
    return self._write(self._params, self._shown, support, mask.astype(bool))

  def _grow(self) -> None:
    more = ((0, self._room()),)
    rows = jnp.pad(self._weights.rows, (*more, (0, 0)))
    mask = jnp.pad(self._weights.mask, more)
    self._weights = self._weights.replace(rows=rows, mask=mask)


@functools.partial(jax.jit, static_argnums=0)
def write(
  head: nn.Module,
  params: Mapping[str, Any],
  shown: heads.BaseMask,
  support: heads.Support,
  mask: heads.SupportMask,
) -> heads.Weights:
  """Base rows, then a row for each class; hidden where it has no support.

  Args:
    head: from `heads.make_head`.
    params: parameters of the `EpisodeNetwork`.
    shown: which base classes there are.
    support: features of the other classes.
    mask: False where a class has fewer supports, or none.
  """
  variables = {"params": params.get("head", {})}
  weights = head.apply(variables, params["base"], shown, support, mask)
  is_class = jnp.concatenate([shown, mask.any(axis=1)])
  return weights.replace(mask=is_class)


@functools.partial(jax.jit, donate_argnums=0)
def _set(weights, number, row, is_class):
  return weights.replace(
    rows=weights.rows.at[number].set(row),
    mask=weights.mask.at[number].set(is_class),
  )


@jax.jit
def _logits(weights, scale, features):
  return weights.logits(features, jnp.abs(scale))


def _padded(groups, room):
  """Supports [room k d] of all classes, and where there are any [room k]."""
  most = _rounded(max(map(len, groups)), 1)
  support = np.zeros((room, most, groups[0].shape[1]), np.float32)
  mask = np.zeros((room, most), bool)
  for number, rows in enumerate(groups):
    support[number, : len(rows)], mask[number, : len(rows)] = rows, True
  return support, mask


def _rounded(number, least):
  """The next power of two."""
  return max(least, 1 << max(0, number - 1).bit_length())
