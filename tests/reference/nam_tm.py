"""The NAM Turing machine from the paper, in numpy, one head at a time."""

import numpy as np

from tests.reference import memory


def move(head, K, query, actions, normalized):
  """actions: probabilities of left, right, no-op and, if given, jump."""
  n = len(head)
  left = np.array([head[(i + 1) % n] for i in range(n)])
  right = np.array([head[(i - 1) % n] for i in range(n)])
  moved = actions[0] * left + actions[1] * right + actions[2] * head
  if len(actions) == 4:
    moved = moved + actions[3] * memory.read(K.T, query, 1)
  return moved / np.linalg.norm(moved) if normalized else moved


def sequence(controls, tape, normalized=True):
  """One sequence of one tape: every control [s ...], tape (T, K, [r, w])."""
  T, K, (r_head, w_head) = tape
  outputs, positions = [], []
  for value, key, query, p_r, p_w, p_e, (r_act, w_act) in zip(
    *controls, strict=True
  ):
    positions.append([r_head, w_head])
    T = memory.write(T, w_head, value, p_w, p_e)
    K = memory.write(K, w_head, key, p_w, p_e)
    outputs.append(memory.read(T, r_head, p_r))
    r_head = move(r_head, K, query, r_act, normalized)
    w_head = move(w_head, K, query, w_act, normalized)
  return np.stack(outputs), (T, K, [r_head, w_head]), np.array(positions)
