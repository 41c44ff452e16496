"""Losses and accuracies by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from nam_jax import training

LOGITS = jnp.log(jnp.asarray([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]] * 2))
TARGETS = jnp.asarray([[0, 2], [1, 2]])
MASK = jnp.asarray([[True, True], [True, False]])


def test_cross_entropy_sums_the_masked_positions():
  total, weight = training.masked_cross_entropy(LOGITS, TARGETS, MASK)
  expected = -np.log(0.5) - np.log(0.8) - np.log(0.25)
  np.testing.assert_allclose([total, weight], [expected, 3], rtol=1e-6)


def test_masked_positions_have_no_gradient_even_with_absurd_targets():
  targets = TARGETS.at[1, 1].set(-100)

  def loss(logits):
    return training.masked_cross_entropy(logits, targets, MASK)[0]

  gradient = np.asarray(jax.grad(loss)(LOGITS))
  assert np.isfinite(gradient).all()
  assert (gradient[1, 1] == 0).all()
  np.testing.assert_allclose(gradient[1, 0], [0.5, -0.75, 0.25], rtol=1e-6)


def test_loss_of_bfloat16_logits_is_summed_in_float32():
  logits = jnp.zeros((1000, 2), jnp.bfloat16)
  targets, mask = jnp.zeros(1000, jnp.int32), jnp.ones(1000, bool)
  total, weight = training.masked_cross_entropy(logits, targets, mask)
  assert total.dtype == weight.dtype == jnp.float32
  np.testing.assert_allclose(total, 1000 * np.log(2), rtol=1e-5)


def test_accuracies_count_tokens_and_whole_sequences():
  assert training.token_accuracy(LOGITS, TARGETS, MASK) == (2, 3)
  assert training.sequence_accuracy(LOGITS, TARGETS, MASK) == (1, 2)


def test_sequence_without_a_masked_position_does_not_count():
  mask = MASK.at[1].set(False)
  assert training.sequence_accuracy(LOGITS, TARGETS, mask) == (1, 1)
