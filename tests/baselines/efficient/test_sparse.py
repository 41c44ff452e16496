"""The fixed patterns of the Sparse Transformer against the full matrix."""

import functools

import numpy as np
import pytest

from nam_jax.baselines.efficient import local, sparse
from nam_jax.layers import self_attention
from tests.reference import attention as reference

BLOCK, SUMMARY = 5, 2


def attend_with(num_global):
  return functools.partial(
    sparse.sparse_attention,
    block_size=BLOCK,
    num_summary=SUMMARY,
    num_global=num_global,
  )


def is_seen(query, key):
  """The definition, for positions after the global tokens."""
  same_block = query // BLOCK == key // BLOCK
  place = key % BLOCK
  return key <= query and (same_block or place == 0 or place >= BLOCK - SUMMARY)


def visible(s, num_global):
  allowed = np.ones((s, s), bool)
  for query in range(num_global, s):
    for key in range(num_global, s):
      allowed[query, key] = is_seen(query - num_global, key - num_global)
  return allowed


run = reference.with_gradient(attend_with(1))


@pytest.mark.parametrize("s", [1, 7, 37])
def test_tokens_see_their_block_and_summaries_of_those_before(s):
  reference.assert_attends(run, visible(s, 1), s)


def test_definition_by_hand():
  rows = [
    "x           ",
    "xx          ",
    "xxx         ",
    "xxxx        ",
    "xxxxx       ",
    "x  xxx      ",
    "x  xxxx     ",
    "x  xxxxx    ",
    "x  xxxxxx   ",
    "x  xxxxxxx  ",
    "x  xxx  xxx ",
    "x  xxx  xxxx",
  ]
  allowed = np.array([[place == "x" for place in row] for row in rows])
  np.testing.assert_array_equal(allowed, visible(12, 0))


def test_bfloat16_without_global_tokens():
  reference.assert_attends_in_bfloat16(attend_with(0), visible(12, 0), 12)


def test_padding_changes_nothing():
  (*inputs, _), _ = reference.tokens(37)
  reference.assert_padding_is_inert(reference.outputs_of(run), inputs, 7)


def test_cost_is_a_fraction_of_full_attention():
  full = functools.partial(local.local_attention, block_size=500)
  fraction = reference.cost(sparse.sparse_attention, 500) / reference.cost(
    full, 500
  )
  assert fraction < 0.4  # a block of 50 and 11 tokens of each of 10 blocks


def test_weights_drop_out_in_training(monkeypatch):
  attention_fn = sparse.sparse_attention_fn(BLOCK, SUMMARY, num_global=1)
  layer = self_attention.SelfAttention(num_heads=2, attention_fn=attention_fn)
  reference.assert_drops_out(monkeypatch, layer, 11, softmaxes=2)
