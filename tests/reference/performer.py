"""Attention by products of features, pair by pair, in float64."""

import numpy as np


def relu_features(query, key, epsilon):
  return np.maximum(query, 0) + epsilon, np.maximum(key, 0) + epsilon


def softmax_features(query, key, directions, epsilon):
  """exp(ω x - |x|² / 2); the largest of a query, and of all keys, is one."""

  def exponents(x):
    x = x / x.shape[-1] ** 0.25
    return x @ directions.T - (x**2).sum(-1, keepdims=True) / 2

  q, k = exponents(query), exponents(key)
  q, k = np.exp(q - q.max(-1, keepdims=True)), np.exp(k - k.max())
  return q + epsilon, k + epsilon


def attention(query, key, value, real, features):
  """Outputs [b s h v]; features(query [s k], keys [t k]) of one head."""
  outputs = np.zeros(value.shape)
  for b, h in np.ndindex(value.shape[0], value.shape[2]):
    seen = real[b]
    if seen.any():
      phi_q, phi_k = features(query[b, :, h], key[b, seen, h])
      weights = phi_q @ phi_k.T
      weights /= weights.sum(axis=1, keepdims=True)
      outputs[b, :, h] = weights @ value[b, seen, h]
  return outputs
