"""For tests of linen modules: random parameters, compiled calls on numpy.

Every small operation outside of `jit` is a program to compile; numpy in and
numpy out keeps the tests quick.
"""

import functools

import jax
import numpy as np


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
