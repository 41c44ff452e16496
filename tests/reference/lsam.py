"""LSAM from the paper, in numpy, one token of one sequence at a time."""

import numpy as np

from tests.reference import memory


def sigmoid(x):
  return 1 / (1 + np.exp(-x))


def unit(x):
  return x / np.linalg.norm(x)


def sequence(x, W_x, b, W_h, M, hidden):
  """x [s d], W_x [d h o], b [h o], W_h [h v h o], M [h v v], hidden [h v]."""
  outputs = []
  heads, width = hidden.shape
  for token in x:
    z = np.einsum("d,dho->ho", token, W_x) + b
    z = z + np.einsum("gv,gvho->ho", hidden, W_h)
    M, hidden = M.copy(), hidden.copy()
    for i in range(heads):
      q, k, v = z[i, :width], z[i, width : 2 * width], z[i, 2 * width : -2]
      p_r, p_w = sigmoid(z[i, -2]), sigmoid(z[i, -1])
      M[i] = memory.write(M[i], unit(k), v, p_w, p_w)
      hidden[i] = memory.read(M[i], unit(q), p_r)
    outputs.append(hidden)
  return np.stack(outputs), M, hidden
