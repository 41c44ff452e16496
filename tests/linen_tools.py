"""For tests of linen modules: random parameters, compiled calls on numpy.

Every small operation outside `jit` is a program to compile; numpy in and numpy
out keeps the tests quick.
"""

import functools

import jax
import numpy as np

# Two rows of real tokens, with padding before, between and after them.
GAPS = np.array([[1, 1, 0, 1, 0, 1], [0, 1, 1, 1, 1, 0]], bool)


def normal(*shape):
  """Normal numbers, the same in every call."""
  return np.float32(np.random.default_rng(0).normal(size=shape))


def close(actual, expected, tol=1e-5):
  """All leaves of two trees agree."""

  def check(a, e):
    np.testing.assert_allclose(a, e, rtol=tol, atol=tol)

  jax.tree.map(check, actual, expected)


def random_params(model, *inputs, scale=0.3, **options):
  """Normal numbers of the given size in the shapes of `model.init`."""
  rng = np.random.default_rng(0)
  shapes = jax.eval_shape(model.init, jax.random.key(0), *inputs, **options)
  return jax.tree.map(
    lambda p: (scale * rng.normal(size=p.shape)).astype(p.dtype), shapes
  )


def compiled(function):
  """The jitted function, with its results as numpy arrays."""
  jitted = jax.jit(function)

  @functools.wraps(function)
  def run(*args, **kwargs):
    return jax.device_get(jitted(*args, **kwargs))

  return run
