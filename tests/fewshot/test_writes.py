"""The algebra of writing supports to a classifier."""

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
WRITES = {name: jax.jit(write) for name, write in writes.WRITES.items()}


def make(n=3, k=4, c=6, d=11, dtype=jnp.float32):
  """base, x, p_w, p_e and a mask with classes of different sizes."""
  random = agreement.Random()
  arrays = random.normal(c, d), random.unit(n, k, d)
  arrays += random.uniform(n, k), random.uniform(n, k)
  mask = np.arange(k)[None] < np.arange(k, k - n, -1)[:, None]
  return *(array.astype(dtype) for array in arrays), mask


unit = jax.jit(nam_jax.unit)


@jax.jit
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
  found = WRITES[accumulate](*arrays, mask)
  loop = jax.jit(lambda *w: few_shot.write_all(*w, mask, accumulate))
  expected = loop(*wide)
  agreement.assert_agree(found.astype(jnp.float32), expected, tolerance)


@pytest.mark.parametrize("accumulate", LOOPED)
def test_gradients_equal_those_of_the_loop(accumulate):
  *arrays, mask = make()
  weights = agreement.Random(9).normal(9, 11)

  def loss(write, *arrays):
    return jnp.sum(weights * jnp.sin(write(*arrays)))

  def product(*arrays):
    return writes.WRITES[accumulate](*arrays, jnp.asarray(mask))

  def loop(*arrays):
    return few_shot.write_all(*arrays, mask, accumulate)

  grad = jax.jit(jax.grad(loss, argnums=(1, 2, 3, 4)), static_argnums=0)
  found = grad(product, *arrays)
  agreement.assert_agree(found, grad(loop, *arrays), 1e-4)


@pytest.mark.parametrize("accumulate", ["sum", "delta", "projection"])
def test_one_shot_novel_rows_are_the_cosine_classifiers(accumulate):
  base, x, p_w, p_e, mask = make(k=1, n=1)
  rows = unit(WRITES[accumulate](base, x, p_w, p_e, mask))
  agreement.assert_agree(rows[6:], cosine_rows(base, x, mask)[6:], 1e-6)


@pytest.mark.parametrize("accumulate", ["sum", "delta", "projection"])
def test_without_erasing_and_full_writes_it_is_the_cosine_classifier(
  accumulate,
):
  base, x, p_w, _, mask = make()
  rows = WRITES[accumulate](
    base, x, jnp.ones_like(p_w), jnp.zeros_like(p_w), mask
  )
  agreement.assert_agree(unit(rows), cosine_rows(base, x, mask), 1e-6)


@pytest.mark.parametrize(
  ("accumulate", "matters"),
  [("sum", False), ("delta", False), ("projection", False), ("scan", True)],
)
def test_only_the_recurrent_memory_knows_an_order(accumulate, matters):
  base, x, p_w, p_e, _ = make()
  mask = np.ones(x.shape[:2], bool)
  write, order = WRITES[accumulate], np.array([2, 0, 3, 1])
  rows = write(base, x, p_w, p_e, mask)
  other = write(base, x[:, order], p_w[:, order], p_e[:, order], mask)
  assert (agreement.relative(other, rows) > 1e-4) == matters


def test_the_printed_order_of_arguments_cannot_erase():
  """With class as key and feature as value p_e has no effect."""
  base, x, p_w, p_e, _ = make(k=1)
  M = jnp.concatenate([base, jnp.zeros((3, 11))]).T  # [d c+n]

  @jax.jit
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
  gradient = jax.grad(lambda p: jnp.sum(printed(p_w, p) ** 3))(p_e)
  assert not gradient.any()


def test_projection_equals_delta_for_orthonormal_supports():
  base, _, p_w, p_e, mask = make(k=1)
  x = jnp.eye(3, 11)[:, None]
  found = WRITES["projection"](base, x, p_w, p_e * (1 + writes.RIDGE), mask)
  agreement.assert_agree(found, WRITES["delta"](base, x, p_w, p_e, mask))


def test_projection_is_the_same_with_more_supports_than_features():
  base, x, p_w, p_e, mask = make(n=4, k=3)  # 12 supports of 11 features
  wide = [jnp.pad(a, ((0, 0),) * (a.ndim - 1) + ((0, 9),)) for a in (base, x)]
  found = WRITES["projection"](base, x, p_w, p_e, mask)
  expected = WRITES["projection"](*wide, p_w, p_e, mask)
  agreement.assert_agree(found, expected[:, :11], 1e-4)


@pytest.mark.parametrize("accumulate", writes.WRITES)
def test_classes_without_supports_change_nothing(accumulate):
  base, x, p_w, p_e, mask = make(n=3, k=4)
  more = [
    jnp.pad(jnp.asarray(a), ((0, 2), *((0, 0),) * (a.ndim - 1)))
    for a in (x, p_w, p_e, mask)
  ]
  found = WRITES[accumulate](base, *more)
  expected = WRITES[accumulate](base, x, p_w, p_e, mask)
  agreement.assert_agree(found[:9], expected, 1e-5)


def test_projection_erases_a_repeated_support_once():
  base, x, p_w, _, _ = make(n=4, k=5)
  x = jnp.broadcast_to(x[:1, :1], x.shape)
  ones, mask = jnp.ones_like(p_w), np.ones(x.shape[:2], bool)
  before = base @ x[0, 0]
  after = WRITES["projection"](base, x, p_w, ones, mask)[:6] @ x[0, 0]
  over = WRITES["delta"](base, x, p_w, ones, mask)[:6] @ x[0, 0]
  assert (np.abs(after) < 0.02 * np.abs(before)).all()
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
  mask = jnp.asarray([[True] * 4, [False] * 4, [False] * 4])  # without shots

  def loss(base, x):
    rows = writes.WRITES[accumulate](base, x, p_w, p_e, mask)
    return jnp.sum(nam_jax.unit(rows) ** 3)

  gradients = jax.jit(jax.grad(loss, argnums=(0, 1)))
  for gradient in gradients(0 * base, x.at[1].set(0)):
    assert np.isfinite(gradient).all()
