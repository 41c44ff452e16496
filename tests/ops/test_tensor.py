"""Memory tensors: nested reads and writes of any order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nam_jax.ops import memory
from nam_jax.ops.tensor import TensorMemory
from tests.agreement import Random, assert_agree


def test_one_level_is_the_memory_matrix():
  rng = Random()
  M, k, v = rng.normal(3, 4, 5), rng.unit(3, 5), rng.normal(3, 4)
  p_w, p_e = rng.uniform(3), rng.uniform(3)
  tensor = TensorMemory(M).write(v, k, p_w=p_w, p_e=p_e)
  assert_agree(tensor.M, memory.write(M, k, v, p_w, p_e))
  assert_agree(tensor.read(k, p_r=p_w), memory.read(tensor.M, k, p_w))


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_theorem_1_holds_at_every_order(levels):
  rng = Random()
  keys = [rng.unit(2, 3 + i) for i in range(levels)]
  shape = (2, 4, *(3 + i for i in reversed(range(levels))))
  value = rng.normal(2, 4)
  tensor = TensorMemory(rng.normal(*shape)).write(value, *keys)
  assert_agree(tensor.read(*keys), value)


def test_a_document_of_sentences_of_words():
  """Orthonormal sentence and word keys: every word is found again."""
  rng = Random()
  sentence_keys, word_keys = jnp.eye(3), jnp.eye(4)
  words = rng.normal(3, 4, 5)
  document = TensorMemory(jnp.zeros((5, 4, 3)))
  for i in range(3):
    sentence = TensorMemory(jnp.zeros((5, 4)))
    for j in range(4):
      sentence = sentence.write(words[i, j], word_keys[j])
    document = document.write(sentence.M, sentence_keys[i])
  for i in range(3):
    for j in range(4):
      word = document.read(sentence_keys[i], word_keys[j])
      np.testing.assert_allclose(word, words[i, j], atol=1e-6)
  # One query gives back the sentence, which is a memory itself.
  sentence = TensorMemory(document.read(sentence_keys[1]))
  np.testing.assert_allclose(
    sentence.read(word_keys[2]), words[1, 2], atol=1e-6
  )


def test_jit_grad_and_vmap_compose():
  rng = Random()
  M, k1, k2, v = (
    rng.normal(6, 2, 3, 4),
    rng.unit(6, 4),
    rng.unit(6, 3),
    rng.normal(6, 2),
  )

  def loss(M, k1, k2, v):
    return jnp.sum(TensorMemory(M).write(v, k1, k2).read(k1, k2) ** 2)

  grad = jax.jit(jax.vmap(jax.grad(loss, 3)))(M, k1, k2, v)
  assert_agree(grad, 2 * v)


def test_too_many_keys_are_refused():
  with pytest.raises(ValueError, match=r"1 to 2 keys, .* got 3"):
    TensorMemory(jnp.zeros((2, 3, 4))).read(*[jnp.ones(4)] * 3)
