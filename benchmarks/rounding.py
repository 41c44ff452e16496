"""What float32 costs a NAM Turing machine on long sequences.

  python -m benchmarks.rounding

The same machine, parameters and tokens in float32 and in float64: the largest
difference of outputs and of any parameter's gradients, relative to the largest.
"""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import nam_jax

LENGTHS = (1000, 2000, 4000)
SEEDS = (0, 1, 2)
WIDTH, HEADS = 64, 4


class Loss(NamedTuple):
  """How much of its largest value each result is off, for the worst seed."""

  tokens: int
  normalize_heads: bool
  outputs: float
  gradients: float


def measure(
  lengths: tuple[int, ...] = LENGTHS, seeds: tuple[int, ...] = SEEDS
) -> Iterator[Loss]:
  """One line for each kind of heads and each length."""
  for normalize_heads in (True, False):
    layer = nam_jax.NAMTuringMachine(HEADS, normalize_heads=normalize_heads)
    for s in lengths:
      worst = np.max([_errors(layer, s, seed) for seed in seeds], axis=0)
      yield Loss(s, normalize_heads, *map(float, worst))


def _errors(layer, s, seed):
  x, weights = np.random.default_rng(seed).standard_normal(
    (2, 1, s, WIDTH), np.float32
  )
  params = jax.jit(layer.init)(jax.random.key(seed), x)
  operands = jax.device_get((params, x, weights))
  narrow = _run(layer, *operands)
  with jax.enable_x64(True):
    exact = _run(layer, *jax.tree.map(np.float64, operands))
  parts = [
    jax.tree.leaves(jax.tree.map(_error, *pair))
    for pair in zip(narrow, exact, strict=True)
  ]
  return [max(part) for part in parts]


def _run(layer, params, x, weights):
  def loss(params, x):
    outputs, _ = layer.apply(params, x)
    return jnp.sum(outputs * weights), outputs

  gradients, outputs = jax.jit(jax.grad(loss, has_aux=True))(params, x)
  return jax.device_get((outputs, gradients))


def _error(actual, expected):
  return np.abs(actual - expected).max() / np.abs(expected).max()


def main() -> None:
  """Prints the table."""
  for loss in measure():
    heads = "unit vectors" if loss.normalize_heads else "raw sums"
    errors = f"{loss.outputs:.0e} | {loss.gradients:.0e}"
    print(f"{heads} | {loss.tokens:,} | {errors}")


if __name__ == "__main__":
  main()
