"""Forward-mode derivatives of functions whose gradients are written by hand.

JAX refuses to push tangents through them: "can't apply forward-mode
differentiation (jvp) to a custom_vjp function". But it can differentiate the
hand-written gradient, which is linear in the gradient of the outputs: its
transpose is the derivative.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def linearize(
  fun: Callable[..., Any], *primals: Any
) -> tuple[Any, Callable[..., Any]]:
  """What `jax.linearize` returns, where JAX refuses forward mode.

  `outputs, push = linearize(fun, *primals)` takes the place of `jax.jvp`:
  `push(*tangents)` is the derivative of the outputs in a direction. For
  `jax.jacfwd`, call `jax.vmap(push)` on the basis vectors.

  Args:
    fun: A function of arrays, or trees of them, of floating point.
    *primals: Where to linearize it.

  Returns:
    The outputs, and the linear map from tangents of the primals to tangents of
    the outputs.
  """
  outputs, pull = jax.vjp(fun, *primals)
  _, push = jax.vjp(pull, jax.tree.map(jnp.zeros_like, outputs))
  return outputs, lambda *tangents: push(tangents)[0]
