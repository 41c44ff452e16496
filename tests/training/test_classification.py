"""Loss and accuracy of a classifier, by hand."""

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from nam_jax.training import classification

LABELS = np.array([0, 1, 1], np.int32)


class Count(nn.Module):
  """Logits (0, number of real tokens - 1); dropout hides tokens."""

  @nn.compact
  def __call__(self, inputs, mask, *, train=False):
    real = jnp.where(mask, inputs, 0.0).sum(axis=1)
    real = nn.Dropout(0.5, deterministic=not train)(real)
    scale = self.param("scale", nn.initializers.ones, ())
    return jnp.stack([jnp.zeros_like(real), scale * (real - 1)], axis=1)


def batch(**more):
  inputs = np.ones((3, 4), np.float32)
  mask = np.arange(4)[None] < np.array([[0], [1], [4]])
  return {"inputs": inputs, "mask": mask, "label": LABELS, **more}


def test_rows_that_do_not_count_are_left_out():
  metric_fn = classification.make_metric_fn(Count())
  params = {"scale": jnp.ones(())}
  rows = batch(row_mask=np.array([True, True, False]))
  metrics = jax.device_get(jax.jit(metric_fn)(params, {}, rows))
  # Logits (0, -1) and (0, 0): the first is right, the second a tie for 0.
  expected = np.log1p(np.exp(-1)) + np.log(2)
  np.testing.assert_allclose(metrics["loss"], (expected, 2), rtol=1e-6)
  assert metrics["accuracy"] == (1, 2)


def test_training_uses_dropout_and_counts_every_row():
  loss_fn = classification.make_loss_fn(Count())
  params = {"scale": jnp.ones(())}
  losses = set()
  for seed in range(8):
    (total, weight), (metrics, extra) = jax.jit(loss_fn)(
      params, {}, batch(), jax.random.key(seed)
    )
    assert (weight, metrics["accuracy"][1], extra) == (3, 3, {})
    assert list(metrics) == ["accuracy"]
    losses.add(float(total))
  assert len(losses) > 1


class Running(nn.Module):
  """Logits (0, 1), and a variable that counts the calls in training."""

  @nn.compact
  def __call__(self, inputs, mask, *, train=False):
    calls = self.variable("batch_stats", "calls", lambda: jnp.zeros(()))
    if train:
      calls.value += 1
    return jnp.tile(jnp.array([[0.0, 1.0]]), (len(inputs), 1))


def test_training_returns_the_variables_that_the_model_changed():
  loss_fn = classification.make_loss_fn(Running())
  extra = {"batch_stats": {"calls": jnp.full((), 2.0)}}
  _, (_, extra) = jax.jit(loss_fn)({}, extra, batch(), jax.random.key(0))
  assert extra == {"batch_stats": {"calls": 3.0}}
  metric_fn = classification.make_metric_fn(Running())
  rows = batch(row_mask=np.ones(3, bool))
  assert jax.jit(metric_fn)({}, extra, rows)["accuracy"] == (2, 3)
