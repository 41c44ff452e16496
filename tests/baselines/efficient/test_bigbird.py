"""BigBird attention: its block pattern, and agreement with the full matrix."""

import functools

import jax
import numpy as np
import pytest
from flax import linen as nn

from nam_jax.baselines.efficient import bigbird
from tests import linen_tools
from tests.reference import attention as reference

S, C = 23, 2
Z = 12
attend = functools.partial(bigbird.bigbird_attention, block_size=C)
run = reference.with_gradient(attend)


@functools.cache
def pattern():
  return reference.pattern(run, S)


def seen_blocks(seen):
  """[s s] -> [z z], where every block is seen completely or not at all."""
  grid = seen[::C, ::C]
  whole = np.repeat(np.repeat(grid, C, axis=0), C, axis=1)[:S, :S]
  np.testing.assert_array_equal(seen, whole)
  return grid


def test_blocks_see_the_ends_their_neighbours_and_three_random_blocks():
  place = np.arange(Z)
  near = np.abs(place[:, None] - place[None]) <= 1
  ends = (place == 0) | (place == Z - 1)
  random = []
  for seen in pattern()[1]:
    grid = seen_blocks(seen)
    assert grid[ends].all()
    assert grid[:, ends].all()
    assert grid[near].all()
    random.append(grid & ~near & ~ends[None])
    assert (random[-1][1:-1].sum(axis=1) == 3).all()
  assert (random[0] != random[1]).any()
  assert (random[0] | random[1])[1:-1, 1:-1].any(axis=0).all()


def test_attends_by_its_pattern():
  reference.assert_attends(run, pattern(), S, v=S)


@pytest.mark.parametrize("s", [1, 7 * C])
def test_few_blocks_get_full_attention(s):
  reference.assert_attends(run, np.ones((s, s), bool), s)


def test_bfloat16():
  reference.assert_attends_in_bfloat16(attend, pattern()[1:2], S)


@pytest.mark.parametrize("s", [7 * C, 9 * C])
def test_padding_changes_nothing(s):
  (*inputs, _), _ = reference.tokens(S, v=S)
  reference.assert_padding_is_inert(reference.outputs_of(run), inputs, s)


def test_cost_is_linear():
  wide = functools.partial(bigbird.bigbird_attention, block_size=16)
  once, twice = (reference.cost(wide, s) for s in (512, 1024))
  assert twice < 2.1 * once


def test_random_blocks_depend_on_the_seed_and_not_on_padding():
  order = bigbird.random_order(0, 2, 9)
  assert (order != bigbird.random_order(1, 2, 9)).all()
  np.testing.assert_array_equal(order[:, :5, :5], bigbird.random_order(0, 2, 5))


class TwoLayers(nn.Module):
  """Two layers of one parent."""

  seed: int

  @nn.compact
  def __call__(self, x):
    for _ in range(2):
      x = bigbird.BigBirdAttention(num_heads=2, seed=self.seed)(x)
    return x


def test_every_layer_has_a_seed_of_its_own(monkeypatch):
  seeds = []

  def attention(query, key, value, *, seed, **options):
    seeds.append(seed)
    return value

  monkeypatch.setattr(bigbird, "bigbird_attention", attention)
  x = np.zeros((1, 3, 4), np.float32)
  for seed in (0, 0, 7):
    linen_tools.random_params(TwoLayers(seed), x)
  first, second = seeds[:2]
  assert first != second
  assert seeds[2:] == [first, second, first + 7, second + 7]


def test_weights_drop_out_in_training(monkeypatch):
  layer = bigbird.BigBirdAttention(num_heads=2, block_size=1)
  reference.assert_drops_out(monkeypatch, layer, 11, softmaxes=2)


def test_parameters():
  layer = bigbird.BigBirdAttention(num_heads=2, qkv_dim=6)
  params = linen_tools.random_params(layer, np.zeros((1, 3, 4), np.float32))
  assert jax.tree.map(np.shape, params["params"]) == {
    "query": {"kernel": (4, 2, 3)},
    "key": {"kernel": (4, 2, 3)},
    "value": {"kernel": (4, 2, 3)},
    "out": {"kernel": (2, 3, 4)},
  }
