"""Batches in blocks: the cut, the loop over them, and loops that use both."""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from nam_jax.layers.nam_tm import NAMTuringMachine
from nam_jax.ops import blocks
from tests.agreement import Random, assert_agree


@pytest.mark.parametrize("axis", [0, 1])
def test_join_undoes_split(axis):
  array = Random().normal(6, 6, 2)
  parts = blocks.split(array, 3, axis)
  assert parts.shape == ((3, 2, 6, 2) if axis == 0 else (3, 6, 2, 2))
  np.testing.assert_array_equal(blocks.join(parts, axis), array)


def test_a_block_takes_every_zth_sample():
  np.testing.assert_array_equal(
    blocks.split(jnp.arange(6), 3), [[0, 3], [1, 4], [2, 5]]
  )


@pytest.mark.parametrize(
  ("batch", "sample_bytes", "expected"),
  [
    (128, 1, 1),  # all of it fits
    (128, 2**15, 8),
    (128, 2**30, 128),  # not even one sample fits
    (12, 2**17, 3),
    (127, 2**15, 1),  # no divisor near 8
    (0, 2**15, 1),
  ],
)
def test_blocks_fit_into_the_cache(batch, sample_bytes, expected):
  assert blocks.count(batch, sample_bytes) == expected


def test_a_batch_is_one_block_on_an_accelerator():
  with mock.patch.object(jax, "default_backend", return_value="gpu"):
    assert blocks.count(128, 2**30) == 1


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("s", [0, 5])
def test_scan_is_the_scan_of_every_block(reverse, s):
  starts, xs = Random().normal(3, 2), (Random(1).normal(3, s, 2), None)

  def step(state, x):
    state = jnp.sin(state + 2 * x[0])
    return state, (state[:1], x[0])

  def alone(start, xs):
    return lax.scan(step, start, xs, reverse=reverse)

  results = blocks.scan(step, starts, xs, reverse)
  assert_agree(results, jax.vmap(alone)(starts, xs), 1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_blocks_change_no_result(masked):
  x = Random().normal(6, 5, 8)
  mask = Random(1).mask(6, 5) if masked else None
  layer = NAMTuringMachine(num_heads=2)
  variables = layer.init(jax.random.key(0), x)

  def run(z):
    def loss(variables, x):
      output, tape, heads = layer.apply(
        variables, x, mask=mask, tape_length=16, return_heads=True
      )
      parts = (output, *tape, heads)
      return sum(jnp.sum(jnp.sin(part)) for part in parts), parts

    jax.clear_caches()
    with mock.patch.object(blocks, "count", return_value=z):
      return jax.jit(jax.value_and_grad(loss, (0, 1), True))(variables, x)

  assert_agree(run(3), run(1), 1e-5)
