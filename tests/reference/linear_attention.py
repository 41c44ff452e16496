"""Linear attention as a full s x t matrix, with its gradient, in float64."""

import numpy as np

EPSILON = 1e-6


def phi(x):
  return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def phi_slope(x):
  return np.where(x > 0, 1.0, np.exp(np.minimum(x, 0)))


def attend(q, k, v, allowed, gradient):
  """One head: q [s k], k [t k], v [t v], allowed [s t], gradient [s v].

  Returns outputs [s v] and the gradients of sum(gradient * outputs) by q, k, v.
  """
  weights = np.where(allowed, phi(q) @ phi(k).T, 0.0)
  norm = weights.sum(axis=1, keepdims=True) + EPSILON
  outputs = weights @ v / norm
  d_v = (weights / norm).T @ gradient
  d_norm = np.sum(gradient * outputs, axis=1, keepdims=True)
  d_weights = np.where(allowed, (gradient @ v.T - d_norm) / norm, 0.0)
  d_q = d_weights @ phi(k) * phi_slope(q)
  d_k = d_weights.T @ phi(q) * phi_slope(k)
  return outputs, d_q, d_k, d_v


def linear_attention(q, k, v, allowed, gradient):
  """The same for q [b s h k], k [b t h k], v [b t h v], allowed [b s t]."""
  q, k, v, gradient = (np.asarray(x, np.float64) for x in (q, k, v, gradient))
  results = [np.zeros_like(x) for x in (gradient, q, k, v)]
  for b in range(q.shape[0]):
    for h in range(q.shape[2]):
      head = (x[b, :, h] for x in (q, k, v))
      for result, part in zip(
        results, attend(*head, allowed[b], gradient[b, :, h]), strict=True
      ):
        result[b, :, h] = part
  return results
