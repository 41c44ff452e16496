"""The algebra of writing supports to a classifier."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import nam_jax
from fewshot import writes
from nam_jax.ops import memory
from tests import agreement
from tests.reference import few_shot

LOOPED = ("sum", "delta", "scan")


def make(n=3, k=4, c=6, d=11, seed=0, dtype=jnp.float32):
  """base, x, p_w, p_e and a mask with classes of different sizes."""
  keys = jax.random.split(jax.random.key(seed), 4)
  base = jax.random.normal(keys[0], (c, d), dtype)
  x = nam_jax.unit(jax.random.normal(keys[1], (n, k, d), dtype))
  p_w, p_e = (jax.random.uniform(key, (n, k), dtype) for key in keys[2:])
  mask = jnp.arange(k)[None] < jnp.arange(k, k - n, -1)[:, None]
  return base, x, p_w, p_e, mask


def cosine_rows(base, x, mask):
  return nam_jax.unit(jnp.concatenate([base, writes.class_means(x, mask)]))


def test_writing_returns_the_class_and_keeps_the_rest_in_part():
  base, x, *_ = make()
  W = jnp.concatenate([base, jnp.zeros((3, 11))])
  value = jnp.eye(9)[7]
  written = memory.write(W, x[0, 0], value, 0.7, 0.4)
  expected = (1 - 0.4) * W @ x[0, 0] + 0.7 * value
  agreement.assert_agree(written @ x[0, 0], expected)


def test_rows_of_a_small_example():
  base = jnp.array([[1.0, 0.0], [0.6, 0.8]])
  x = jnp.array([[[1.0, 0.0]], [[0.0, 1.0]]])
  p_w, p_e = jnp.array([[0.5], [1.0]]), jnp.array([[1.0], [0.5]])
  mask = jnp.ones((2, 1), bool)
  novel = [[0.5, 0.0], [0.0, 1.0]]
  found = writes.write_delta(base, x, p_w, p_e, mask)
  agreement.assert_agree(found, np.array([[0.0, 0.0], [0.0, 0.4], *novel]))
  found = writes.write_sum(base, x, p_w, p_e, mask)
  agreement.assert_agree(found, np.array([[1.0, 0.0], [0.6, 1.2], *novel]))


@pytest.mark.parametrize("accumulate", LOOPED)
@pytest.mark.parametrize(
  ("dtype", "tolerance"), [(jnp.float32, 1e-5), (jnp.bfloat16, 3e-2)]
)
def test_products_equal_the_loop(accumulate, dtype, tolerance):
  *arrays, mask = make(dtype=dtype)
  wide = [array.astype(jnp.float32) for array in arrays]
  loop = functools.partial(few_shot.write_all, accumulate=accumulate)
  found = writes.WRITES[accumulate](*arrays, mask)
  expected = loop(*wide, mask)
  agreement.assert_agree(found.astype(jnp.float32), expected, tolerance)


@pytest.mark.parametrize("accumulate", LOOPED)
def test_gradients_equal_those_of_the_loop(accumulate):
  *arrays, mask = make()
  weights = jax.random.normal(jax.random.key(9), (9, 11))

  def loss(write, *arrays):
    return jnp.sum(weights * jnp.sin(write(*arrays, mask)))

  loop = functools.partial(few_shot.write_all, accumulate=accumulate)
  grad = jax.grad(loss, argnums=(1, 2, 3, 4))
  found = grad(writes.WRITES[accumulate], *arrays)
  agreement.assert_agree(found, grad(loop, *arrays), 1e-4)


@pytest.mark.parametrize("accumulate", ["sum", "delta", "projection"])
def test_one_shot_novel_rows_are_the_cosine_classifiers(accumulate):
  base, x, p_w, p_e, mask = make(k=1, n=1)
  rows = nam_jax.unit(writes.WRITES[accumulate](base, x, p_w, p_e, mask))
  agreement.assert_agree(rows[6:], cosine_rows(base, x, mask)[6:], 1e-6)


@pytest.mark.parametrize("accumulate", ["sum", "delta", "projection"])
def test_without_erasing_and_full_writes_it_is_the_cosine_classifier(
  accumulate,
):
  base, x, p_w, _, mask = make()
  rows = writes.WRITES[accumulate](
    base, x, jnp.ones_like(p_w), jnp.zeros_like(p_w), mask
  )
  agreement.assert_agree(nam_jax.unit(rows), cosine_rows(base, x, mask), 1e-6)


@pytest.mark.parametrize(
  ("accumulate", "matters"),
  [("sum", False), ("delta", False), ("projection", False), ("scan", True)],
)
def test_only_the_recurrent_memory_knows_an_order(accumulate, matters):
  base, x, p_w, p_e, _ = make()
  mask = jnp.ones(x.shape[:2], bool)
  write, order = writes.WRITES[accumulate], jnp.array([2, 0, 3, 1])
  rows = write(base, x, p_w, p_e, mask)
  other = write(base, x[:, order], p_w[:, order], p_e[:, order], mask)
  assert (agreement.relative(other, rows) > 1e-4) == matters


def test_the_printed_order_of_arguments_cannot_erase():
  """With class as key and feature as value p_e has no effect."""
  base, x, p_w, p_e, _ = make(k=1)
  M = jnp.concatenate([base, jnp.zeros((3, 11))]).T  # [d c+n]

  def printed(p_w, p_e):
    total = jnp.zeros_like(M)
    for i in range(3):
      total += memory.write(M, jnp.eye(9)[6 + i], x[i, 0], p_w[i, 0], p_e[i, 0])
    return nam_jax.unit(total.T)

  rows = printed(p_w, p_e)
  agreement.assert_agree(rows, printed(p_w, jnp.zeros_like(p_e)), 1e-6)
  agreement.assert_agree(
    rows, cosine_rows(base, x, jnp.ones((3, 1), bool)), 1e-6
  )
  gradient = jax.grad(lambda p: jnp.sum(jnp.sin(printed(p_w, p))))(p_e)
  assert not gradient.any()


def test_projection_equals_delta_for_orthonormal_supports():
  base, _, p_w, p_e, mask = make(k=1)
  x = jnp.eye(3, 11)[:, None]
  found = writes.write_projection(base, x, p_w, p_e * (1 + writes.RIDGE), mask)
  agreement.assert_agree(found, writes.write_delta(base, x, p_w, p_e, mask))


def test_projection_erases_a_repeated_support_once():
  base, x, p_w, _, _ = make(n=4, k=5)
  x = jnp.broadcast_to(x[:1, :1], x.shape)
  ones, mask = jnp.ones_like(p_w), jnp.ones(x.shape[:2], bool)
  before = base @ x[0, 0]
  after = writes.write_projection(base, x, p_w, ones, mask)[:6] @ x[0, 0]
  over = writes.write_delta(base, x, p_w, ones, mask)[:6] @ x[0, 0]
  assert (jnp.abs(after) < 0.02 * jnp.abs(before)).all()
  agreement.assert_agree(over, -3 * before)  # four classes, each erases all


def test_removing_the_span_leaves_what_base_rows_do_not_explain():
  base, x, *_ = make()
  rows = jnp.concatenate([base[:2], x[:, 0]])
  apart = writes.remove_span(rows, base, 1e-5)
  assert jnp.abs(apart[:2]).max() < 1e-3
  assert jnp.abs(apart @ base.T).max() < 1e-3


@pytest.mark.parametrize("accumulate", writes.WRITES)
def test_gradients_are_finite_at_zero_rows(accumulate):
  base, x, p_w, p_e, _ = make()
  mask = jnp.zeros(x.shape[:2], bool).at[0].set(True)  # classes without shots

  def loss(base, x):
    rows = writes.WRITES[accumulate](base, x, p_w, p_e, mask)
    return jnp.sum(nam_jax.unit(rows) ** 3)

  for gradient in jax.grad(loss, argnums=(0, 1))(0 * base, x.at[1].set(0)):
    assert jnp.isfinite(gradient).all()
