"""How closely two results must agree, and random arrays to compare them on."""

import functools

import jax
import jax.numpy as jnp
import numpy as np


def relative(actual, expected) -> float:
  """The largest difference, as a fraction of the largest expected value."""
  actual, expected = np.asarray(actual), np.asarray(expected)
  assert actual.shape == expected.shape
  if not expected.size:
    return 0.0
  scale = np.abs(expected).max()
  return float(np.abs(actual - expected).max() / (scale if scale else 1.0))


def assert_agree(actual, expected, tolerance=1e-5):
  """Checks that leaves agree to a fraction of their largest value."""
  pairs = jax.tree.leaves_with_path(actual)
  for (path, a), e in zip(pairs, jax.tree.leaves(expected), strict=True):
    error = relative(a, e)
    assert error <= tolerance, f"{jax.tree_util.keystr(path)}: {error:.1e}"


def in_float64(tree):
  """The same arrays in float64; call it within `jax.enable_x64(True)`."""
  return jax.tree.map(lambda a: jnp.asarray(np.float64(a)), tree)


def by_position(form):
  """A memory form as a function of q, k, v, p_r, p_w and p_e."""

  @functools.wraps(form)
  def run(q, k, v, p_r=1.0, p_w=1.0, p_e=1.0, **options):
    return form(q, k, v, p_r=p_r, p_w=p_w, p_e=p_e, **options)

  return run


class Random:
  """A seeded source of float32 arrays."""

  def __init__(self, seed=0):
    self._rng = np.random.default_rng(seed)

  def normal(self, *shape):
    return jnp.asarray(self._rng.standard_normal(shape), jnp.float32)

  def uniform(self, *shape):
    return jnp.asarray(self._rng.random(shape), jnp.float32)

  def mask(self, *shape, real=0.7):
    return jnp.asarray(self._rng.random(shape) < real)

  def unit(self, *shape):
    x = self._rng.standard_normal(shape)
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return jnp.asarray(x, jnp.float32)
