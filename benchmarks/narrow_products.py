"""How exact `memory_chunked` is when its large products are narrow.

  python -m benchmarks.narrow_products

Accelerators round the operands of matrix products, to TF32 or to bfloat16,
unless `precision` asks for more. A CPU does not; here it rounds them as an
accelerator would. What `memory_chunked` always computes in float32 stays so.
"""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

import nam_jax

TOKENS, HEADS, WIDTH = 1024, 2, 64
# Bits of the significand after the first, and how many parts of an operand.
PRODUCTS = {
  "float32": (23, 1),
  "TF32": (10, 1),
  "bfloat16, three passes": (7, 2),
  "bfloat16": (7, 1),
}
_matmul = jnp.matmul


def rounded(x, bits: int):
  """x with so many bits after the first; its gradient is that of x."""
  integer = jax.lax.bitcast_convert_type(x, jnp.int32)
  unit = 1 << (23 - bits)
  integer = (integer + unit // 2) & ~(unit - 1)
  exact = jax.lax.bitcast_convert_type(integer, x.dtype)
  return x + jax.lax.stop_gradient(exact - x)


def narrow_matmul(bits: int, parts: int):
  """`jnp.matmul` with rounded operands, unless a precision is given."""

  def matmul(a, b, precision=None):
    if precision is not None:
      return _matmul(a, b, precision=precision)
    first_a, first_b = rounded(a, bits), rounded(b, bits)
    product = _matmul(first_a, first_b)
    if parts == 1:
      return product
    rest_a, rest_b = rounded(a - first_a, bits), rounded(b - first_b, bits)
    return product + _matmul(first_a, rest_b) + _matmul(rest_a, first_b)

  return matmul


def tokens(spread: float):
  """q, k, v; a small spread makes all keys of a head nearly equal."""
  rng = np.random.default_rng(0)
  shape = (1, TOKENS, HEADS, WIDTH)
  centre = (1 - spread) * rng.normal(size=(1, 1, 1, HEADS, WIDTH))
  vectors = centre + spread * rng.normal(size=(2, *shape))
  vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
  return [jnp.float32(a) for a in (*vectors, rng.normal(size=shape))]


def results(form, q, k, v):
  """Outputs and gradients."""

  def total(*x):
    outputs = form(*x)[0]
    return jnp.sum(jnp.sin(outputs)), outputs

  gradients, outputs = jax.jit(jax.grad(total, (0, 1, 2), has_aux=True))(
    q, k, v
  )
  return outputs, gradients


def errors(bits: int, parts: int, spread: float) -> list[float]:
  """The largest differences of outputs and gradients to token by token."""
  x = tokens(spread)
  expected = results(nam_jax.memory_scan, *x)
  jax.clear_caches()
  with mock.patch.object(jnp, "matmul", narrow_matmul(bits, parts)):
    actual = results(nam_jax.memory_chunked, *x)
  jax.clear_caches()

  def worst(actual, expected):
    pairs = zip(*map(jax.tree.leaves, (actual, expected)), strict=True)
    return max(float(jnp.abs(a - e).max() / jnp.abs(e).max()) for a, e in pairs)

  return [worst(*pair) for pair in zip(actual, expected, strict=True)]


def main() -> None:
  """Prints one line per kind of product."""
  print("products, then outputs and gradients: random keys, nearly equal keys")
  for name, (bits, parts) in PRODUCTS.items():
    found = [errors(bits, parts, spread) for spread in (1.0, 0.05)]
    cells = ", ".join(f"{outputs:.0e} {grads:.0e}" for outputs, grads in found)
    print(f"{name}: {cells}")


if __name__ == "__main__":
  main()
