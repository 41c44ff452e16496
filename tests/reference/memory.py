"""RD and WR from the paper, in numpy, one token of one head at a time."""

import numpy as np


def read(M, q, p_r):
  return p_r * (M @ q)


def write(M, k, v, p_w, p_e):
  return M + p_w * np.outer(v, k) - p_e * np.outer(M @ k, k)


def sequence(q, k, v, p_r, p_w, p_e, initial=None, mask=None, reverse=False):
  """Arrays [b s h *] and gates [b s h] in, (outputs, memory) out, float64."""
  q, k, v = (np.asarray(a, np.float64) for a in (q, k, v))
  b, s, h, width = k.shape
  memory = np.zeros((b, h, v.shape[-1], width))
  if initial is not None:
    memory += np.asarray(initial, np.float64)
  outputs = np.zeros(v.shape)
  gates = [np.broadcast_to(p, (b, s, h)) for p in (p_r, p_w, p_e)]
  order = range(s - 1, -1, -1) if reverse else range(s)
  for i in range(b):
    for j in range(h):
      for t in order:
        if mask is not None and not mask[i, t]:
          continue
        r, w, e = (float(p[i, t, j]) for p in gates)
        memory[i, j] = write(memory[i, j], k[i, t, j], v[i, t, j], w, e)
        outputs[i, t, j] = read(memory[i, j], q[i, t, j], r)
  return outputs, memory
