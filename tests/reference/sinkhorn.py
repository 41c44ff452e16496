"""Attention to a token's own block and a mixture of blocks, block by block."""

import numpy as np


def mixture(logits, sort_activation):
  """Weights of logits [z n]: rows normalised, for sinkhorn then columns."""
  weights = np.exp(logits - logits.max(axis=1, keepdims=True))
  weights = weights / weights.sum(axis=1, keepdims=True)
  if sort_activation == "sinkhorn":
    weights = weights / weights.sum(axis=0, keepdims=True)
  return weights


def softmax_attention(query, key, value):
  scores = query @ key.T / np.sqrt(key.shape[-1])
  weights = np.exp(scores - scores.max(axis=1, keepdims=True))
  return weights @ value / weights.sum(axis=1, keepdims=True)


def head(query, key, value, real, sort, c, sort_activation):
  """One head in blocks of c: query, key, value [s k], real [s], sort [k n]."""
  s, outputs = len(query), np.zeros(value.shape)
  blocks = {
    i: [t for t in range(c * i, min(c * i + c, s)) if real[t]]
    for i in range(-(-s // c))
  }
  blocks = {i: tokens for i, tokens in blocks.items() if tokens}
  sources = [i for i in blocks if i < sort.shape[1]]
  for tokens in blocks.values():
    outputs[tokens] = softmax_attention(
      query[tokens], key[tokens], value[tokens]
    )
  if not sources:
    return outputs
  sums = np.array([key[tokens].sum(axis=0) for tokens in blocks.values()])
  weights = mixture(sums @ sort[:, sources], sort_activation)
  slots = sorted({t % c for i in sources for t in blocks[i]})

  def mixed(x, row):
    result = np.zeros((c, x.shape[-1]))
    for i, weight in zip(sources, row, strict=True):
      for t in blocks[i]:
        result[t % c] += weight * x[t]
    return result[slots]

  for tokens, row in zip(blocks.values(), weights, strict=True):
    outputs[tokens] += softmax_attention(
      query[tokens], mixed(key, row), mixed(value, row)
    )
  return outputs


def attention(query, key, value, real, sort, block_size, sort_activation):
  """All heads: query, key, value [b s h k], real [b s], sort [k n]."""
  outputs = np.zeros(value.shape)
  for b, h in np.ndindex(value.shape[0], value.shape[2]):
    heads = (x[b, :, h] for x in (query, key, value))
    outputs[b, :, h] = head(*heads, real[b], sort, block_size, sort_activation)
  return outputs
