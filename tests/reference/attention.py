"""Softmax attention as a full matrix with a pattern, in float64.

Also what the tests of efficient attentions share: random inputs, the comparison
with the full matrix, the pattern and the cost of an attention. Here an
attention is a function (query, key, value, *, mask) -> outputs.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from nam_jax.baselines.efficient import blocks
from tests import agreement, linen_tools

# Compiling takes most of a test's time.
compiled_quickly = functools.partial(
  jax.jit, compiler_options={"xla_backend_optimization_level": 0}
)


def masked_attention(query, key, value, allowed, gradient=None):
  """Attends where it is allowed; queries without any key output zero.

  Args:
    query: [b s h k].
    key: [b t h k].
    value: [b t h v].
    allowed: which query may see which key, [s t], [b s t] or [b h s t].
    gradient: the outputs' gradient, [b s h v]; with it, returns the outputs and
      the gradients of query, key and value, else the outputs alone.
  """
  query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
  scale = query.shape[-1] ** -0.5
  scores = scale * np.einsum("bshk,bthk->bhst", query, key)
  scores = np.where(for_heads(allowed), scores, -np.inf)
  top = np.maximum(scores.max(axis=-1, keepdims=True), -1e300)
  weights = np.exp(scores - top)
  weights = weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-300)
  outputs = np.einsum("bhst,bthv->bshv", weights, value)
  if gradient is None:
    return outputs
  gradient = np.asarray(gradient, np.float64)
  d_weights = np.einsum("bshv,bthv->bhst", gradient, value)
  mean = np.sum(weights * d_weights, axis=-1, keepdims=True)
  d_scores = scale * weights * (d_weights - mean)
  return (
    outputs,
    np.einsum("bhst,bthk->bshk", d_scores, key),
    np.einsum("bhst,bshk->bthk", d_scores, query),
    np.einsum("bhst,bshv->bthv", weights, gradient),
  )


def for_heads(allowed):
  """[s t], [b s t] or [b h s t] as the last of these."""
  if allowed.ndim == 4:
    return allowed
  return allowed.reshape(-1, 1, *allowed.shape[-2:])


def tokens(s, h=2, k=4, v=3):
  """Random query, key, value, gradient of the outputs, and a mask.

  There are three sequences: one with some padding, one with none, and one with
  nothing else.
  """
  rng = np.random.default_rng(s)
  mask = np.stack([rng.random(s) < 0.7, np.ones(s, bool), np.zeros(s, bool)])
  arrays = [rng.normal(size=(3, s, h, w)) for w in (k, k, v, v)]
  return [np.float32(x) for x in arrays], mask


def with_gradient(attention):
  """(mask, gradient, query, key, value) -> outputs and gradients, compiled."""

  @compiled_quickly
  def run(mask, gradient, *qkv):
    outputs, backward = jax.vjp(functools.partial(attention, mask=mask), *qkv)
    return outputs, *backward(gradient)

  return lambda *args: jax.device_get(run(*args))


def outputs_of(run):
  """(mask, query, key, value) -> outputs, for an attention `with_gradient`."""
  return lambda mask, *qkv: run(mask, np.zeros_like(qkv[2]), *qkv)[0]


def pattern(run, s, h=2, k=4):
  """Which token sees which, [3 h s s], for an attention `with_gradient`.

  It is found with equal scores for all pairs, on the sequences of `tokens`.
  """
  _, mask = tokens(s)
  scores = np.zeros((3, s, h, k), np.float32)
  value = np.eye(s, dtype=np.float32)[None, :, None]
  value = np.broadcast_to(value, (3, s, h, s))
  weights = outputs_of(run)(mask, scores, scores, value).swapaxes(1, 2)
  seen = weights > 0
  number = np.maximum(seen.sum(axis=-1, keepdims=True), 1)
  np.testing.assert_allclose(weights, seen / number, rtol=1e-5)
  return seen


def assert_attends(run, allowed, s, **widths):
  """Outputs and gradients on random tokens are those of the full matrix.

  Padded tokens may output anything finite, but zero where all are padding.

  Args:
    run: an attention `with_gradient`.
    allowed: which query may see which key if both are real.
    s: number of tokens.
    **widths: widths of the tokens.
  """
  (*qkv, gradient), mask = tokens(s, **widths)
  known = (mask | ~mask.any(axis=1, keepdims=True))[..., None, None]
  outputs, *gradients = run(mask, gradient * known, *qkv)
  expected, *expected_gradients = masked_attention(
    *qkv, for_heads(allowed) & mask[:, None, None], gradient * known
  )
  assert np.isfinite(outputs).all()
  agreement.assert_agree(
    [outputs * known, *gradients], [expected * known, *expected_gradients]
  )


def assert_attends_in_bfloat16(attention, allowed, s):
  """The same to two digits, for the outputs of tokens without padding."""
  (*qkv, _), _ = tokens(s)
  narrow = [x[1:2].astype(jnp.bfloat16) for x in qkv]
  outputs = compiled_quickly(attention)(*narrow)
  assert outputs.dtype == jnp.bfloat16
  expected = masked_attention(*(np.float32(x) for x in narrow), allowed)
  agreement.assert_agree(np.asarray(outputs, np.float32), expected, 0.02)


def assert_padding_is_inert(attend, inputs, s):
  """Padding after s real tokens of some inputs [3 ...] changes no real output.

  Args:
    attend: (mask, *inputs) -> outputs.
    inputs: sequences of more than s tokens.
    s: number of real tokens in the first one; the others have fewer.
  """
  mask = np.arange(inputs[0].shape[1])[None] < np.array([[s], [s - 1], [1]])
  longer = np.asarray(attend(mask, *inputs))[:, :s]
  mask = mask[:, :s]
  shorter = np.asarray(attend(mask, *(x[:, :s] for x in inputs)))
  agreement.assert_agree(longer[mask], shorter[mask])


def assert_layer_equals(layer, params, x, mask, expected):
  """Outputs are as expected, gradients finite, even for padding alone."""

  @compiled_quickly
  def run(params, x, mask):
    def total(params, x):
      outputs = layer.apply(params, x, mask=mask)
      return jnp.sum(outputs**2), outputs

    return jax.grad(total, (0, 1), has_aux=True)(params, x)

  gradients, outputs = jax.device_get(run(params, x, mask))
  agreement.assert_agree(outputs, expected)
  assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradients))


def assert_drops_out(monkeypatch, layer, s, softmaxes=1, d=4):
  """Every softmax of a layer drops weights, in training only.

  Another test checks that a softmax with a key drops its weights.
  """
  x = np.ones((1, s, d), np.float32)
  dropping = layer.clone(dropout_rate=0.5)
  params = linen_tools.random_params(dropping, x)
  softmax, given = blocks.masked_softmax, []

  def spy(scores, *dropout):
    given.append(dropout)
    return softmax(scores, *dropout)

  monkeypatch.setattr(blocks, "masked_softmax", spy)
  rngs = {"dropout": jax.random.key(0)}
  jax.eval_shape(dropping.apply, params, x)
  assert given == [(None, 0.5)] * softmaxes
  del given[:]
  train = functools.partial(dropping.apply, train=True)
  jax.eval_shape(train, params, x, rngs=rngs)
  assert [rate for _, rate in given] == [0.5] * softmaxes
  assert len({id(rng) for rng, _ in given} - {id(None)}) == softmaxes


def cost(attention, s):
  """Floating-point operations of the compiled attention over s tokens."""
  shape = jax.ShapeDtypeStruct((1, s, 1, 4), jnp.float32)
  compiled = compiled_quickly(attention).lower(shape, shape, shape).compile()
  return compiled.cost_analysis()["flops"]
