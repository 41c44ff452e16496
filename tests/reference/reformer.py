"""Attention among chunks of tokens sorted by hashes, token by token."""

import numpy as np


def buckets(query, rotation):
  """The hash of each query [s k]."""
  products = query @ rotation
  return np.concatenate([products, -products], axis=-1).argmax(-1)


def seen_by(token, ordered, chunk_len):
  """The other tokens in the token's chunk and in the one before it."""
  chunk = ordered.index(token) // chunk_len
  start = max(chunk - 1, 0) * chunk_len
  return [t for t in ordered[start : (chunk + 1) * chunk_len] if t != token]


def head(query, value, real, rotations, chunk_len):
  """One head: query [s k], value [s v], real [s], rotations [r k n]."""
  outputs = np.zeros(value.shape)
  tokens = [int(t) for t in np.flatnonzero(real)]
  orders = []
  for rotation in rotations:
    bucket = buckets(query, rotation)
    orders.append(sorted(tokens, key=lambda t, bucket=bucket: (bucket[t], t)))
  for token in tokens:
    seen = [t for o in orders for t in seen_by(token, o, chunk_len)] or [token]
    keys = query[seen] / np.linalg.norm(query[seen], axis=-1, keepdims=True)
    scores = keys @ query[token]
    weights = np.exp(scores - scores.max())
    outputs[token] = weights @ value[seen] / weights.sum()
  return outputs


def attention(query, value, real, rotations, chunk_len):
  """All heads: query [b s h k], value [b s h v], real [b s]."""
  outputs = np.zeros(value.shape)
  for b, h in np.ndindex(value.shape[0], value.shape[2]):
    outputs[b, :, h] = head(
      query[b, :, h], value[b, :, h], real[b], rotations, chunk_len
    )
  return outputs
