"""The memory of a sequence that is split over devices, inside `jax.shard_map`.

A device holds a span of the tokens, and only memories travel between devices.
To the memory M that it starts with, a span does

  M' = M A + B,   r_t = M a_t + b_t,

where B and b_t are what it writes and reads when it starts empty. A and a_t are
the same for the rows of the identity matrix when nothing is written: they keep
what is not erased and does not decay. So one run over the span with the rows of
both memories stacked, [0; I], gives all four. Two adjacent spans combine into
one, [B; A] = [B1; A1] A2 + [B2; 0], so after log2(devices) rounds, in which
each device receives the spans of the devices 1, 2, 4, ... before it, it has all
earlier spans as one, and so its M. Where nothing is ever erased or decays,
A = I and a_t = q_t. In the NAM-Transformer, where every token reads the whole
sequence, all that devices exchange is the sum of B.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from nam_jax.ops import memory_form, outer_product, sequence
from nam_jax.ops.masks import Mask
from nam_jax.ops.sequence import Gate, KeyGate, ValueGate


def outer_product_attention_sharded(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b s h k"],
  v: Float[Array, "b s h v"],
  *,
  axis_name: str,
  mask: Mask | None = None,
  p_w: ValueGate = 1.0,
  p_r: Gate = 1.0,
) -> Float[Array, "b s h v"]:
  """What `outer_product_attention` computes, for this device's span.

  Call it inside `jax.shard_map`. All that devices exchange is one sum of
  [b h v k]. The causal form is `memory_sharded` with p_e = 0.

  Args are those of `outer_product_attention`, for the tokens of the span, and:
    axis_name: The mesh axis that the sequence is split over.
  """

  def total(M):
    return _vary(lax.psum(M, axis_name), M)

  return outer_product.attend_all(q, k, v, mask, p_w, p_r, total)


@sequence.gates_by_name
def memory_sharded(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b s h k"],
  v: Float[Array, "b s h v"],
  *,
  axis_name: str,
  p_r: Gate = 1.0,
  p_w: ValueGate = 1.0,
  p_e: KeyGate = 1.0,
  erase_key: Float[Array, "b s h k"] | None = None,
  log_decay: KeyGate | None = None,
  initial_memory: Float[Array, "b h v k"] | None = None,
  mask: Mask | None = None,
  reverse: bool = False,
) -> tuple[Float[Array, "b s h v"], Float[Array, "b h v k"]]:
  """What `memory` computes, for this device's span of the sequence.

  Call it inside `jax.shard_map`. The devices do equal work in parallel. Each
  sends 1 + log2(devices) times [b h v+k k] ([b h v k] if p_e is the number 0
  and nothing decays), and a sum of [b h v k] if the final memory is used,
  nothing else.

  Args are those of `memory`, for the tokens of the span, and:
    axis_name: The mesh axis that the sequence is split over.
    initial_memory: The memory before the first token of the whole sequence.

  Returns:
    The outputs of the span, in the type of v, and the memory after the whole
    sequence, the same on all devices, in float32 or wider.
  """
  gates = (p_r, p_w, p_e, erase_key, log_decay)
  ops = sequence.fold(q, k, v, gates, initial_memory, mask)
  reads, queries, span = _run_span(ops, reverse)
  M = _start_memory(ops.memory, span, axis_name, reverse)
  reads = reads + jnp.einsum("bhvk,bshk->bshv", M, queries)
  last = 0 if reverse else lax.axis_size(axis_name) - 1
  is_last = lax.axis_index(axis_name) == last
  after = _then(M, span, M.shape[2])
  final = lax.psum(jnp.where(is_last, after, 0), axis_name)
  return sequence.outputs(reads, p_r, mask, v.dtype), final


def _run_span(ops, reverse):
  """b [b s h v], a [b s h k], and [B; A], or B alone if A = I."""
  q, k, x, e, decay, M = ops
  M = jnp.zeros_like(x, shape=M.shape)
  changes = e is not None or decay is not None
  if changes:
    x = jnp.concatenate([x, jnp.zeros_like(k)], axis=-1)
    identity = jnp.eye(M.shape[-1], dtype=M.dtype)
    identity = jnp.broadcast_to(identity, (*M.shape[:2], *identity.shape))
    M = jnp.concatenate([M, identity], axis=2)
  if decay is not None and decay.shape[-1] == 1:
    decay = decay[..., 0]
  reads, span = memory_form.memory(
    q,
    k,
    x,
    p_e=0 if e is None else 1,
    erase_key=e,
    log_decay=decay,
    initial_memory=M,
    reverse=reverse,
  )
  if not changes:
    return reads, q, span
  b, a = jnp.split(reads, [ops.memory.shape[2]], axis=-1)
  return b, a, span


def _then(rows, span, v):
  """rows A + [B; 0], for the v rows B and the rows A, or A = I, of a span.

  This applies a span to a memory, or to the [B; A] of the span before it.
  """
  B, A = jnp.split(span, [v], axis=2)
  B = jnp.pad(B, ((0, 0), (0, 0), (0, rows.shape[2] - v), (0, 0)))
  return (rows @ A if A.shape[2] else rows) + B


def _start_memory(M, span, axis_name, reverse):
  """The initial memory after all spans before this device's."""
  count, here = lax.axis_size(axis_name), lax.axis_index(axis_name)
  place = count - 1 - here if reverse else here

  def from_before(array, steps):
    pairs = [(i, i + steps) for i in range(count - steps)]
    pairs = [(b, a) for a, b in pairs] if reverse else pairs
    return lax.ppermute(array, axis_name, pairs)

  v, steps = M.shape[2], 1
  while steps < count:
    both = _then(from_before(span, steps), span, v)
    span = jnp.where(place >= steps, both, span)
    steps *= 2
  M = _vary(M, span)
  return jnp.where(place > 0, _then(M, from_before(span, 1), v), M)


def _vary(array, like):
  """The array, marked as varying across devices where `like` does."""
  return array + jnp.zeros_like(like, shape=array.shape)
