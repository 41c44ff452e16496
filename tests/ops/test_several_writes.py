"""Several writes per token, against one write after the other."""

import jax.numpy as jnp
import numpy as np
import pytest

import nam_jax
from tests.agreement import Random, assert_agree
from tests.reference import memory as reference

B, S, N, H, K, V = 2, 5, 3, 2, 4, 3


def arguments():
  rng = Random(0)
  writes = rng.uniform(B, S, N, H), 2 * rng.uniform(B, S, N, H)
  vectors = rng.unit(B, S, H, K), rng.unit(B, S, N, H, K)
  return *vectors, rng.normal(B, S, N, H, V), rng.uniform(B, S, H), *writes


def one_by_one(q, k, v, p_r, p_w, p_e, decay, mask, M):
  """With numpy, in the order of the tokens."""
  outputs = np.zeros((B, S, H, V))
  M = np.array(M, np.float64)
  for b, h in np.ndindex(B, H):
    for s in np.flatnonzero(mask[b]):
      M[b, h] = M[b, h] * np.exp(float(decay[b, s, h]))
      for n in range(N):
        at = (b, s, n, h)
        M[b, h] = reference.write(M[b, h], k[at], v[at], p_w[at], p_e[at])
      outputs[b, s, h] = reference.read(M[b, h], q[b, s, h], p_r[b, s, h])
  return outputs, M


@pytest.mark.parametrize("reverse", [False, True])
def test_equals_one_write_after_the_other(reverse):
  q, k, v, p_r, p_w, p_e = x = arguments()
  rng = Random(1)
  decay, mask, M = -rng.uniform(B, S, H), rng.mask(B, S), rng.normal(B, H, V, K)
  actual = nam_jax.memory_several_writes(
    q,
    k,
    v,
    p_r=p_r,
    p_w=p_w,
    p_e=p_e,
    log_decay=decay,
    initial_memory=M,
    mask=mask,
    reverse=reverse,
  )

  def turn(array):
    return np.asarray(array)[:, ::-1] if reverse else np.asarray(array)

  outputs, memory = one_by_one(*map(turn, (*x, decay, mask)), M)
  assert_agree(actual, (turn(outputs), memory), 1e-5)


def test_one_write_is_memory_and_packed_rows_stay_apart():
  q, k, v, p_r, *_ = arguments()
  ids = jnp.array([[0, 0, 1, 1, 1], [0, 1, 2, 3, 3]])
  several = nam_jax.memory_several_writes(
    q, k[:, :, :1], v[:, :, :1], p_r=p_r, log_decay=-0.1, segment_ids=ids
  )
  one = nam_jax.memory(
    q, k[:, :, 0], v[:, :, 0], p_r=p_r, log_decay=-0.1, segment_ids=ids
  )
  assert_agree(several, one, 1e-6)


def test_two_writes_turn_what_one_cannot():
  """Two reflections are a rotation; two times 90 degrees are 180."""
  east, north = jnp.eye(2)
  k = jnp.stack([nam_jax.unit(east + north), east])[None, None, :, None]
  k = jnp.repeat(k, 2, axis=1)
  _, M = nam_jax.memory_several_writes(
    jnp.zeros((1, 2, 1, 2)),
    k,
    jnp.zeros_like(k),
    p_e=2,
    initial_memory=jnp.eye(2)[None, None],
  )
  np.testing.assert_allclose(M[0, 0], -jnp.eye(2), atol=1e-6)
