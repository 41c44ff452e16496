"""Normalised outer-product attention: a memory that is never erased.

With p_e = 0 the writes commute, M = sum_t p_w v_t k_t^T, and a sequence costs
two matrix products (paper, section Efficient Transformer using NAM). Their
gradients are written by hand, which lets XLA transpose less: with y = mu(x),

  dV_t = dM mu(k_t),  dmu(k_t) = dM^T v_t,  dM = sum_s dR_s mu(q_s)^T,
  dmu(q_s) = M^T dR_s,  dx = (dy - (y . dy) y) / |x|
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from nam_jax.ops import (
  masks,
  memory_form,
  normalize,
  precision,
  sequence,
)
from nam_jax.ops.masks import Mask
from nam_jax.ops.sequence import Gate, ValueGate


def outer_product_attention(
  q: Float[Array, "b s h k"],
  k: Float[Array, "b s h k"],
  v: Float[Array, "b s h v"],
  *,
  mask: Mask | None = None,
  causal: bool = False,
  p_w: ValueGate = 1.0,
  p_r: Gate = 1.0,
) -> Float[Array, "b s h v"]:
  """(V^T mu(K)) mu(Q): queries and keys are normalised here.

  Args:
    q: Queries.
    k: Keys.
    v: Values.
    mask: True at real tokens. The others write nothing and read zero.
    causal: Position t reads what was written up to and including t; otherwise
      every position reads the whole sequence.
    p_w: Write probability, one number, one per token and head, or one per
      channel of the value.
    p_r: Read probability, one number or one per token and head.

  Returns:
    The outputs, in the type of v.
  """
  if not causal:
    return attend_all(q, k, v, mask, p_w, p_r)
  sequence.check_heads(q, k, v, mask)
  q, k = (normalize.unit(masks.hide(array, mask)) for array in (q, k))
  return memory_form.memory(q, k, v, p_r=p_r, p_w=p_w, p_e=0, mask=mask)[0]


def attend_all(q, k, v, mask, p_w, p_r, total=lambda M: M):
  """Bidirectional attention; total turns M into the memory of all tokens.

  M is the memory of the given tokens, which by default are all of them.
  """
  sequence.check_heads(q, k, v, mask)
  sequence.check_gate("p_r", p_r, v.shape, channels=False)
  sequence.check_gate("p_w", p_w, v.shape)
  q, k, v = (masks.hide(array, mask) for array in (q, k, v))
  M = outer_product_memory(k, sequence.scale(p_w, v, mask))
  return sequence.outputs(read_all(total(M), q), p_r, mask, v.dtype)


def outer_product_memory(
  k: Float[Array, "b t h k"], v: Float[Array, "b t h v"]
) -> Float[Array, "b h v k"]:
  """sum_t v_t mu(k_t)^T, accumulated in float32 or wider."""
  return _memory(k, v)


@jax.custom_vjp
def _memory(k, v):
  return _memory_forward(k, v)[0]


def _memory_forward(k, v):
  unit, scale = normalize.unit_and_scale(precision.widen(k))
  M = jnp.einsum(
    "bthv,bthk->bhvk",
    v,
    unit.astype(k.dtype),
    preferred_element_type=precision.accumulator(v.dtype),
  )
  return M, (k, v, scale)


def _memory_backward(residuals, dM):
  k, v, scale = residuals
  unit = precision.widen(k) * scale.length
  d_unit = jnp.einsum("bhvk,bthv->bthk", dM, precision.widen(v))
  dv = jnp.einsum("bhvk,bthk->bthv", dM, unit)
  dk = normalize.unit_back(unit, scale, d_unit)
  return dk.astype(k.dtype), dv.astype(v.dtype)


_memory.defvjp(_memory_forward, _memory_backward)


def read_all(
  M: Float[Array, "b h v k"], q: Float[Array, "b s h k"]
) -> Float[Array, "b s h v"]:
  """M mu(q_s) for every position s, in the type of M."""
  return _read(M, q.astype(M.dtype))


@jax.custom_vjp
def _read(M, q):
  return _read_forward(M, q)[0]


def _read_forward(M, q):
  unit, scale = normalize.unit_and_scale(q)
  return jnp.einsum("bhvk,bshk->bshv", M, unit), (M, q, scale)


def _read_backward(residuals, d_reads):
  M, q, scale = residuals
  unit = q * scale.length
  dM = jnp.einsum("bshv,bshk->bhvk", d_reads, unit)
  d_unit = jnp.einsum("bhvk,bshv->bshk", M, d_reads)
  return dM, normalize.unit_back(unit, scale, d_unit)


_read.defvjp(_read_forward, _read_backward)
