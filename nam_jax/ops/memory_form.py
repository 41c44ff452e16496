"""A whole sequence of reads and writes, in whichever form is faster.

On a CPU, narrow memories that erase run token by token, which keeps them in
cache. Everything else runs in chunks.
"""

from jaxtyping import Array, Float

from nam_jax.ops import chunked, hardware, recurrent, sequence
from nam_jax.ops.masks import Mask
from nam_jax.ops.sequence import Gate, SegmentIds

_CPU_WIDTH = 64  # the widest keys that a CPU runs token by token


@sequence.gates_by_name
def memory(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b s h k"],
  v: Float[Array, "b s h v"],
  *,
  mask: Mask | None = None,
  reverse: bool = False,
  segment_ids: SegmentIds | None = None,
  initial_memory: Float[Array, "b h v k"] | None = None,
  p_r: Gate = 1.0,
  p_w: Gate = 1.0,
  p_e: Gate = 1.0,
) -> tuple[Float[Array, "b s h v"], Float[Array, "b h v k"]]:
  """`memory_scan` or `memory_chunked`, whichever is faster.

  Arguments and results are those of `memory_scan`; the two forms differ only
  by rounding.
  """
  erases = not sequence.is_zero(p_e)
  narrow = erases and k.shape[-1] <= _CPU_WIDTH and segment_ids is None
  by_token = narrow and hardware.on_cpu()
  form = recurrent.memory_scan if by_token else chunked.memory_chunked
  return form(
    q,
    k,
    v,
    p_r=p_r,
    p_w=p_w,
    p_e=p_e,
    initial_memory=initial_memory,
    mask=mask,
    reverse=reverse,
    segment_ids=segment_ids,
  )
