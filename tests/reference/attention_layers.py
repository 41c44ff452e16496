"""What every attention layer must do, and its projections in float64.

A twin of a layer is a function (query, key, value, real [b s]) -> [b s h v] in
numpy; all arrays but the last are [b s h k] and float64. Compiled programs are
kept, so tests of one layer should use the same lengths.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors

from tests import agreement, linen_tools
from tests.reference import attention

B, D = 2, 8


def tokens(s):
  """Random tokens, and a mask with holes and a padded end."""
  rng = np.random.default_rng(s)
  mask = rng.random((B, s)) < 0.7
  mask[0] = True
  mask[1, 0], mask[1, s - s // 4 :] = True, False
  return np.float32(rng.normal(size=(B, s, D))), mask


def compiled(function):
  """Like `linen_tools.compiled`, without optimisation."""
  jitted = attention.compiled_quickly(function)
  return lambda *args, **options: jax.device_get(jitted(*args, **options))


@functools.cache
def params_of(layer):
  return linen_tools.random_params(layer, jnp.zeros((B, 3, D)))


@functools.cache
def apply(layer):
  """The compiled layer: (params, x, mask=mask) -> outputs."""
  return compiled(layer.apply)


@functools.cache
def gradient(layer):
  """The gradients of the sum of squared real outputs by (params, x)."""

  def total(params, x, mask):
    outputs = layer.apply(params, x, mask=mask)
    return jnp.sum(jnp.where(mask[..., None], outputs, 0) ** 2)

  return compiled(jax.grad(total, (0, 1)))


def project(params, x, twin, mask):
  """The twin between the layer's projections; keys may be the queries."""
  kernels = {n: np.float64(p["kernel"]) for n, p in params["params"].items()}
  query, key, value = (
    np.einsum("bsd,dhk->bshk", x, kernels[name])
    for name in ("query", "key" if "key" in kernels else "query", "value")
  )
  heads = twin(query, key, value, mask)
  return np.einsum("bshv,hvd->bsd", heads, kernels["out"])


def assert_equals_twin(layer, s, make_twin):
  """Checks the outputs; make_twin(layer, params) is the layer's twin."""
  x, mask = tokens(s)
  params = params_of(layer)
  expected = project(params, x, make_twin(layer, params), mask)
  actual = apply(layer)(params, x, mask=mask)
  agreement.assert_agree(actual[mask], expected[mask], 1e-5)


def assert_gradient_equals_twin(layer, s, make_twin):
  """Checks gradients by finite differences of the twin in one direction."""
  x, mask = tokens(s)
  params = params_of(layer)
  rng = np.random.default_rng(0)
  step = jax.tree.map(lambda p: rng.normal(size=p.shape), (params, x))

  def total(size):
    moved = jax.tree.map(lambda p, d: p + size * d, (params, x), step)
    twin = make_twin(layer, moved[0])
    return (project(*moved, twin, mask)[mask] ** 2).sum()

  expected = (total(1e-6) - total(-1e-6)) / 2e-6
  gradients = gradient(layer)(params, x, mask)
  products = jax.tree.map(lambda g, d: (g * d).sum(), gradients, step)
  actual = sum(jax.tree.leaves(products))
  np.testing.assert_allclose(actual, expected, rtol=1e-3)


def assert_padding_is_inert(layer, s, longer):
  """More padded tokens, large or zero, change no output of a real one."""
  x, mask = tokens(s)
  params = params_of(layer)
  noise = np.random.default_rng(0).normal(size=(B, longer, D))

  def compare(x, mask, noise):
    padded = np.float32(noise)
    padded[:, :s][mask] = x[mask]
    real = np.pad(mask, ((0, 0), (0, longer - s)))
    outputs = apply(layer)(params, x, mask=mask)
    more = apply(layer)(params, padded, mask=real)
    agreement.assert_agree(more[real], outputs[mask], 1e-5)

  compare(x, mask, 10 * noise)
  compare(10 * x, mask, 0 * noise)
  compare(x, np.ones_like(mask), noise)


def assert_finite_without_real_tokens(layer, s):
  """Checks that gradients are finite, even at zero and at large inputs."""
  x, mask = tokens(s)
  mask[0] = False
  for scale in (0, 1, 100):
    results = gradient(layer)(params_of(layer), np.float32(scale) * x, mask)
    assert all(np.isfinite(r).all() for r in jax.tree.leaves(results))


def assert_close_in_bfloat16(layer, s):
  """The result in bfloat16 is close to that in float32."""
  x, mask = tokens(s)
  narrow = layer.clone(dtype=jnp.bfloat16)
  outputs = [
    apply(a)(params_of(layer), x, mask=mask)[mask] for a in (narrow, layer)
  ]
  assert outputs[0].dtype == jnp.bfloat16
  agreement.assert_agree(np.float32(outputs[0]), outputs[1], 0.1)


def assert_drops_in_training_only(layer, s):
  """Dropout needs its rng only in training, and depends on it."""
  x, mask = tokens(s)
  dropping = layer.clone(dropout_rate=0.5)
  train = functools.partial(dropping.apply, train=True)
  jax.eval_shape(dropping.apply, params_of(layer), x)
  with pytest.raises(errors.InvalidRngError, match="dropout"):
    jax.eval_shape(train, params_of(layer), x)
  run = compiled(train)
  first, second = (
    run(
      params_of(layer),
      x,
      mask=mask,
      rngs={"dropout": jax.random.key(i, impl="rbg")},
    )
    for i in range(2)
  )
  assert not np.allclose(first[mask], second[mask])


def flops(layer, s):
  """The layer's work on one sequence of s tokens."""
  x = jax.ShapeDtypeStruct((1, s, D), jnp.float32)
  lowered = jax.jit(layer.apply).lower(params_of(layer), x)
  return lowered.cost_analysis()["flops"]


def shapes(layer):
  """The shape of every parameter."""
  return jax.tree.map(np.shape, params_of(layer)["params"])
