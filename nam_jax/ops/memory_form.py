"""A whole sequence of reads and writes, in whichever form is faster.

On a CPU, narrow memories that erase or decay run token by token, which keeps
them in cache. Everything else runs in chunks.
"""

import functools

import jax
from jaxtyping import Array, Float

from nam_jax.ops import chunked, hardware, recurrent, sequence, undo
from nam_jax.ops.masks import Mask
from nam_jax.ops.sequence import Gate, KeyGate, SegmentIds, ValueGate


@sequence.gates_by_name
def memory(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b s h k"],
  v: Float[Array, "b s h v"],
  *,
  p_r: Gate = 1.0,
  p_w: ValueGate = 1.0,
  p_e: KeyGate = 1.0,
  erase_key: Float[Array, "b s h k"] | None = None,
  log_decay: KeyGate | None = None,
  initial_memory: Float[Array, "b h v k"] | None = None,
  mask: Mask | None = None,
  segment_ids: SegmentIds | None = None,
  reverse: bool = False,
) -> tuple[Float[Array, "b s h v"], Float[Array, "b h v k"]]:
  """`memory_scan` or `memory_chunked`, whichever is faster.

  Arguments and results are those of `memory_scan`; the two forms differ only
  by rounding.
  """
  gates = (p_r, p_w, p_e, erase_key, log_decay)
  ops = sequence.fold(q, k, v, gates, initial_memory, mask, segment_ids)
  if segment_ids is None and k.shape[-1] <= _widest(ops):
    reads, M = _narrow(ops, reverse)
  else:
    reads, M = chunked.run(ops, segment_ids, None, None, reverse)
  return sequence.outputs(reads, p_r, mask, v.dtype), M


def _widest(ops: sequence.Operands) -> int:
  """The widest keys that a CPU runs token by token."""
  if ops.log_decay is None:
    return 0 if ops.e is None else 64
  if ops.e is None and ops.log_decay.shape[-1] == 1:
    return 16
  return 32


@functools.partial(jax.jit, static_argnums=1)
def _narrow(ops: sequence.Operands, reverse: bool):
  """Token by token on a CPU, in chunks elsewhere."""
  shape, decays = ops.k.shape, ops.log_decay is not None
  function = hardware.differentiable(
    chunked.form(shape, reverse=reverse),
    on_cpu=recurrent.form(reverse, decays, cut=undo.is_cut(shape[-1])),
  )
  return function(*ops, None)
