"""How a sequence is cut into chunks of tokens, and these into segments.

A segment is what is computed at once: the whole sequence on an accelerator; on
a CPU as much of it as fits into the cache.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

_CPU_NUMBERS = 2**17  # of an operand that a CPU computes with at once


class Cut(NamedTuple):
  """How a sequence [b s h d] is cut into chunks, and these into segments."""

  size: int  # tokens in a chunk
  length: int  # tokens in all
  segments: int

  def take(self, array, i):
    """Segment i as chunks [z b h c d]."""
    b, _, h, d = array.shape
    length = self.length // self.segments
    if self.segments > 1:
      array = lax.dynamic_slice_in_dim(array, i * length, length, axis=1)
    array = array.reshape(b, length // self.size, self.size, h, d)
    return array.transpose(1, 0, 3, 2, 4)

  def loop(self, body, carry, saved=None, reverse=False):
    """Calls body(carry, i, saved_i) for every segment i, in turn.

    It returns (carry, chunks, saved): what to carry on, chunks [z b h c d] to
    be joined to sequences [b s h d], and what to save.
    """
    if self.segments == 1:
      carry, chunks, saved = body(carry, 0, saved)
      return carry, jax.tree.map(self._sequence, chunks), saved
    first = jax.tree.map(lambda a: a[0], saved)
    _, chunks, _ = jax.eval_shape(body, carry, 0, first)

    def empty(chunk):
      _, b, h, _, d = chunk.shape
      shape = (b, self.length, h, d)
      return jnp.zeros_like(jax.tree.leaves(carry)[0], chunk.dtype, shape=shape)

    def step(carry, operands):
      (carry, sequences), (i, saved) = carry, operands
      carry, chunks, saved = body(carry, i, saved)
      put = functools.partial(self._put, i=i)
      return (carry, jax.tree.map(put, sequences, chunks)), saved

    start = (carry, jax.tree.map(empty, chunks))
    operands = (jnp.arange(self.segments), saved)
    (carry, sequences), saved = lax.scan(step, start, operands, reverse=reverse)
    return carry, sequences, saved

  def _sequence(self, chunks):
    z, b, h, c, d = chunks.shape
    return chunks.transpose(1, 0, 3, 2, 4).reshape(b, z * c, h, d)

  def _put(self, sequence, chunks, i):
    start = i * (self.length // self.segments)
    part = self._sequence(chunks)
    return lax.dynamic_update_slice_in_dim(sequence, part, start, axis=1)


def make_cut(size: int, s: int, width: int) -> Cut:
  """Cuts s tokens into segments that fit into the cache.

  Args:
    size: Tokens in a chunk.
    s: Tokens in all.
    width: Numbers of a token, for all heads of a batch; 0 for one segment.
  """
  chunks = max(1, -(-s // size))
  at_once = max(1, _CPU_NUMBERS // (size * width)) if width else chunks
  segments = -(-chunks // at_once)
  return Cut(size, size * segments * -(-chunks // segments), segments)
