"""Several writes per token, and one read (DeltaProduct, Siems et al. 2025).

One write changes a memory in a single direction; n writes per token, each with
its own key, can turn it in n, for instance rotate it.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from nam_jax.ops import memory_form, sequence
from nam_jax.ops.masks import Mask
from nam_jax.ops.sequence import Gate, KeyGate, SegmentIds

Writes = Float[Array, "b s n h"] | Float[Array, ""] | float | int


@sequence.gates_by_name
def memory_several_writes(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b s n h k"],
  v: Float[Array, "b s n h v"],
  *,
  p_r: Gate = 1.0,
  p_w: Writes | Float[Array, "b s n h v"] = 1.0,
  p_e: Writes | Float[Array, "b s n h k"] = 1.0,
  log_decay: KeyGate | None = None,
  initial_memory: Float[Array, "b h v k"] | None = None,
  mask: Mask | None = None,
  segment_ids: SegmentIds | None = None,
  reverse: bool = False,
) -> tuple[Float[Array, "b s h v"], Float[Array, "b h v k"]]:
  """`memory` with n writes per token, in order, and then one read.

  Keys, values and the gates of writes have an axis n after that of the tokens.
  The memory decays before a token's first write. Everything else is as in
  `memory`.
  """
  if k.ndim != 5 or v.shape[:4] != k.shape[:4] or not k.shape[2]:
    raise ValueError(
      "k and v must have 5 axes (batch, sequence, writes, heads, width) and"
      f" agree in the first four, got {k.shape} and {v.shape}"
    )
  n = k.shape[2]

  def turn(array):
    return jnp.flip(array, axis=1) if reverse and jnp.ndim(array) else array

  def flat(array):
    """[b s n ...] as [b s*n ...]."""
    if jnp.ndim(array) == 0:
      return array
    array = jnp.asarray(array)
    b, s = array.shape[:2]
    return turn(array).reshape(b, s * n, *array.shape[3:])

  def at(write, array):
    """[b s ...] as [b s*n ...], zero but for one of a token's writes."""
    if jnp.ndim(array) == 0:
      array = jnp.full(q.shape[:3], array)
    empty = jnp.zeros((*array.shape[:2], n, *array.shape[2:]), array.dtype)
    return flat(empty.at[:, :, write].set(array))

  def every(array):
    return None if array is None else flat(jnp.repeat(array[:, :, None], n, 2))

  sequence.check_log_decay(log_decay, q.shape)
  outputs, memory = memory_form.memory(
    at(n - 1, q),
    flat(k),
    flat(v),
    p_r=p_r if jnp.ndim(p_r) == 0 else at(n - 1, p_r),
    p_w=flat(p_w),
    p_e=flat(p_e),
    log_decay=None if log_decay is None else at(0, log_decay),
    initial_memory=initial_memory,
    mask=every(mask),
    segment_ids=every(segment_ids),
  )
  outputs = outputs.reshape(*q.shape[:2], n, *outputs.shape[2:])
  return turn(outputs[:, :, -1]), memory
