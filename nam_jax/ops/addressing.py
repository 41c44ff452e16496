"""Addressing of the Differentiable Neural Computer (Graves et al. 2016).

Pure functions on arrays with any leading batch axes, in the order in which a
step uses them; the equations are those of the paper's Methods section.

Notation: n memory slots, k slot width, r read heads; the one write head has no
axis. A weighting is non-negative and sums to at most one over the slots.
"""

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from nam_jax.ops import normalize


def content_weighting(
  memory: Float[Array, "*b n k"],
  keys: Float[Array, "*b r k"],
  strengths: Float[Array, "*b r"],
) -> Float[Array, "*b r n"]:
  """C(M, k, β)[i] = softmax_i(β cos(k, M[i])); the cosine of zero is zero."""
  cosines = _cosines(memory, normalize.unit(keys))
  return jax.nn.softmax(strengths[..., None] * cosines, axis=-1)


@jax.custom_vjp
def _cosines(memory, keys):
  """unit(M) k for unit vectors k [r k], without the unit vectors of M."""
  return _cosines_forward(memory, keys)[0]


def _cosines_forward(memory, keys):
  scale = normalize.unit_and_scale(memory)[1]
  scale = jax.tree.map(lambda a: jnp.swapaxes(a, -1, -2), scale)
  cosines = _compare(memory, keys) * scale.length
  return cosines, (memory, keys, scale, cosines)


def _cosines_backward(residuals, gradient):
  memory, keys, scale, cosines = residuals
  d_products = gradient * scale.length
  along = jnp.sum(gradient * cosines, axis=-2, keepdims=True)
  shrink = jnp.swapaxes(along * scale.length * scale.turn, -1, -2)
  d_memory = _outer(d_products, keys) - shrink * memory
  return d_memory, _collect(memory, d_products)


_cosines.defvjp(_cosines_forward, _cosines_backward)


def _compare(memory, keys):
  """The product of every key [r k] with every slot, [r n]."""
  return jnp.einsum("...rk,...nk->...rn", keys, memory)


def _collect(memory, weights):
  """The sum of the slots under each weighting [r n], [r k]."""
  return jnp.einsum("...rn,...nk->...rk", weights, memory)


def _outer(left, right):
  """Σ_r left_r right_rᵀ, transposed first: twice as fast on a CPU."""
  left = lax.optimization_barrier(jnp.swapaxes(left, -1, -2))
  return left @ right


def retention(
  free_gates: Float[Array, "*b r"], read_weights: Float[Array, "*b r n"]
) -> Float[Array, "*b n"]:
  """ψ = Π_r (1 - f_r w_r): how much of each slot is not freed."""
  return jnp.prod(1 - free_gates[..., None] * read_weights, axis=-2)


def update_usage(
  usage: Float[Array, "*b n"],
  write_weights: Float[Array, "*b n"],
  retained: Float[Array, "*b n"],
) -> Float[Array, "*b n"]:
  """u' = (u + w - u ∘ w) ∘ ψ, with w the previous write weighting."""
  return (usage + write_weights - usage * write_weights) * retained


def allocation_weighting(usage: Float[Array, "*b n"]) -> Float[Array, "*b n"]:
  """a[φ_j] = (1 - u[φ_j]) Π_{i<j} u[φ_i], φ the slots by ascending usage.

  The free list φ itself is piecewise constant and carries no gradient; the
  usages do. Slots of equal usage are taken in the order of their index.

  Nothing is sorted: the product is over all slots that come before. Its
  gradient divides it by each factor; none counts as less than 2^-64, so that
  an empty slot can be divided out again.
  """
  return _allocation_weighting(usage)


@jax.custom_vjp
def _allocation_weighting(usage):
  return _allocation_forward(usage)[0]


def _allocation_forward(usage):
  return (1 - usage) * _product_before(usage, usage), usage


def _allocation_backward(usage, gradient):
  factors = jnp.maximum(usage, 2.0**-64)
  product = _product_before(usage, factors)
  later = (1 - usage) * product * gradient
  later = jnp.where(_comes_before(usage), later[..., None, :], 0)
  return (jnp.sum(later, axis=-1) / factors - product * gradient,)


_allocation_weighting.defvjp(_allocation_forward, _allocation_backward)


def _product_before(usage, factors):
  """For each slot, the product of the factors of those before it."""
  factors = jnp.where(_comes_before(usage), factors[..., :, None], 1)
  return jnp.prod(factors, axis=-2)


def _comes_before(usage):
  """Whether slot i is before slot j on the free list, [i j]."""
  n = usage.shape[-1]
  first, second = usage[..., :, None], usage[..., None, :]
  in_order = jnp.broadcast_to(jnp.tri(n, k=-1, dtype=bool).T, (*usage.shape, n))
  return (first < second) | ((first == second) & in_order)


def write_weighting(
  content: Float[Array, "*b n"],
  allocation: Float[Array, "*b n"],
  allocation_gate: Float[Array, "*b"],
  write_gate: Float[Array, "*b"],
) -> Float[Array, "*b n"]:
  """w = g_w (g_a a + (1 - g_a) c)."""
  gate = allocation_gate[..., None]
  return write_gate[..., None] * (gate * allocation + (1 - gate) * content)


def write(
  memory: Float[Array, "*b n k"],
  weights: Float[Array, "*b n"],
  erase: Float[Array, "*b k"],
  vector: Float[Array, "*b k"],
) -> Float[Array, "*b n k"]:
  """M' = M ∘ (1 - w eᵀ) + w vᵀ."""
  weights = weights[..., None]
  kept = memory * (1 - weights * erase[..., None, :])
  return kept + weights * vector[..., None, :]


def update_link(
  link: Float[Array, "*b n n"],
  precedence: Float[Array, "*b n"],
  write_weights: Float[Array, "*b n"],
) -> Float[Array, "*b n n"]:
  """L'[i,j] = (1 - w[i] - w[j]) L[i,j] + w[i] p[j], L'[i,i] = 0.

  L[i,j] is how much slot i was written right after slot j; `precedence` is
  the one before this write.
  """
  written = write_weights[..., None] * precedence[..., None, :]
  return _no_diagonal(_kept(write_weights) * link + written)


def _kept(write_weights):
  """1 - w[i] - w[j]: how much of a link a write leaves."""
  return 1 - write_weights[..., None] - write_weights[..., None, :]


def _no_diagonal(link):
  diagonal = jnp.broadcast_to(jnp.eye(link.shape[-1], dtype=bool), link.shape)
  return jnp.where(diagonal, 0, link)


def update_precedence(
  precedence: Float[Array, "*b n"], write_weights: Float[Array, "*b n"]
) -> Float[Array, "*b n"]:
  """p' = (1 - Σ_i w[i]) p + w: how much each slot was the last one written."""
  written = jnp.sum(write_weights, axis=-1, keepdims=True)
  return (1 - written) * precedence + write_weights


def forward_weighting(
  link: Float[Array, "*b n n"], read_weights: Float[Array, "*b r n"]
) -> Float[Array, "*b r n"]:
  """f_r = L w_r: what was written right after the slots last read."""
  return jnp.einsum("...ij,...rj->...ri", link, read_weights)


def backward_weighting(
  link: Float[Array, "*b n n"], read_weights: Float[Array, "*b r n"]
) -> Float[Array, "*b r n"]:
  """b_r = Lᵀ w_r: what was written right before the slots last read."""
  return jnp.einsum("...ij,...ri->...rj", link, read_weights)


def update_and_follow(
  link: Float[Array, "*b n n"],
  precedence: Float[Array, "*b n"],
  write_weights: Float[Array, "*b n"],
  read_weights: Float[Array, "*b r n"],
) -> tuple[
  Float[Array, "*b n n"], Float[Array, "*b r n"], Float[Array, "*b r n"]
]:
  """L' of `update_link`, and its backward and forward weightings.

  Links are the largest arrays of a step. The gradient is written by hand, in
  fewer passes over them:

    G = dL' + Σ_r (df_r w_rᵀ + w_r db_rᵀ), zero on the diagonal
    dw_r = L'ᵀ df_r + L' db_r,   dp = Gᵀ w,   dL = (1 - w[i] - w[j]) G[i,j]
    dw = G p - (G ∘ L) 1 - (G ∘ L)ᵀ 1
  """
  return _update_and_follow(link, precedence, write_weights, read_weights)


@jax.custom_vjp
def _update_and_follow(link, precedence, write_weights, read_weights):
  new = update_link(link, precedence, write_weights)
  backward = backward_weighting(new, read_weights)
  return new, backward, forward_weighting(new, read_weights)


def _update_and_follow_forward(*operands):
  results = _update_and_follow(*operands)
  return results, (*operands, results[0])


def _update_and_follow_backward(residuals, gradients):
  link, precedence, write_weights, read_weights, new = residuals
  G, d_backward, d_forward = gradients
  left = jnp.concatenate([d_forward, read_weights], axis=-2)
  right = jnp.concatenate([read_weights, d_backward], axis=-2)
  G = _no_diagonal(G + _outer(left, right))
  d_read = backward_weighting(new, d_forward) + forward_weighting(
    new, d_backward
  )
  product, ones = G * link, jnp.ones_like(precedence)
  d_write = jnp.einsum("...ij,...j->...i", G, precedence)
  d_write = d_write - jnp.einsum("...ij,...j->...i", product, ones)
  d_write = d_write - jnp.einsum("...ij,...i->...j", product, ones)
  d_precedence = jnp.einsum("...ij,...i->...j", G, write_weights)
  return _kept(write_weights) * G, d_precedence, d_write, d_read


_update_and_follow.defvjp(
  _update_and_follow_forward, _update_and_follow_backward
)


def read_weighting(
  modes: Float[Array, "*b r 3"],
  backward: Float[Array, "*b r n"],
  content: Float[Array, "*b r n"],
  forward: Float[Array, "*b r n"],
) -> Float[Array, "*b r n"]:
  """w_r = π_r[1] b_r + π_r[2] c_r + π_r[3] f_r."""
  weightings = jnp.stack([backward, content, forward], axis=-2)
  return jnp.einsum("...rm,...rmn->...rn", modes, weightings)


def read(
  memory: Float[Array, "*b n k"], weights: Float[Array, "*b r n"]
) -> Float[Array, "*b r k"]:
  """r_r = Mᵀ w_r."""
  return _read(memory, weights)


@jax.custom_vjp
def _read(memory, weights):
  return _collect(memory, weights)


def _read_forward(memory, weights):
  return _collect(memory, weights), (memory, weights)


def _read_backward(operands, gradient):
  memory, weights = operands
  return _outer(weights, gradient), _compare(memory, gradient)


_read.defvjp(_read_forward, _read_backward)
