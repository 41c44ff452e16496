"""NAM attention in numpy: one token of one head at a time, float64."""

import numpy as np


def sigmoid(z):
  return 1 / (1 + np.exp(-z))


def silu(z):
  return z * sigmoid(z)


def softplus(z):
  return np.log1p(np.exp(z))


def unit(x):
  return x / np.linalg.norm(x)


def outputs(layer, params, x, mask=None):
  """The layer's outputs [b s d], from {group: {name: array}}."""
  params = {
    group: {name: np.float64(array) for name, array in members.items()}
    for group, members in params.items()
  }
  x, out = np.float64(x), params["out"]
  y = np.zeros(x.shape) + out.get("bias", 0)
  real = np.ones(x.shape[:2], bool) if mask is None else mask
  for i, h in np.ndindex(len(x), layer.num_heads):
    back = layer.bidirectional and h >= layer.num_heads // 2
    places = np.flatnonzero(real[i])[:: -1 if back else 1]
    heads = run(layer, params, x[i, places], h)
    y[i, places] += heads @ out["kernel"][h]
  return y


def run(layer, params, x, h):
  """What head h returns for tokens [s d], one after another: [s v]."""

  def project(name, token):
    group = params[name]
    bias = group["bias"][h] if "bias" in group else 0
    return np.tensordot(token, group["kernel"][:, h], 1) + bias

  past, states, queries, returned = [], [], [], []
  M = 0
  for token in x:
    parts = (project(name, token) for name in ("query", "key", "value"))
    qkv = np.concatenate([np.atleast_2d(part) for part in parts])
    past.append(qkv)
    if layer.convolution:
      kernel = params["short_convolution"]["kernel"][:, :, h]
      last = past[-len(kernel) :]
      weights = kernel[len(kernel) - len(last) :]
      qkv = silu(sum(w * p for w, p in zip(weights, last, strict=True)))
    n = layer.num_writes
    M = M * np.exp(log_decay(layer, params, token, h))
    each = (np.reshape(p, (n, -1)) for p in gates(layer, project, token))
    for p_w, p_e, k, v in zip(*each, qkv[1 : 1 + n], qkv[1 + n :], strict=True):
      k = unit(k)
      M = M + np.outer(p_w * v - (M * (p_e * k)).sum(-1), k)
    states.append(M)
    queries.append(unit(qkv[0]))
  for token, M, q in zip(x, states, queries, strict=True):
    o = (states[-1] if layer.mode == "bidirectional" else M) @ q
    if layer.output_norm:
      scale = params["out_norm"]["scale"]
      o = scale * o / np.sqrt(np.mean(o**2) + 1e-5)
    if layer.output_gate:
      act = {"silu": silu, "sigmoid": sigmoid}[layer.output_gate]
      o = act(project("out_gate", token)) * o
    returned.append(o)
  return np.stack(returned) if returned else np.zeros((0, 1))


def gates(layer, project, token):
  if layer.mode != "erase":
    return 1, 0
  if layer.tied_gates:
    beta = layer.max_erase * sigmoid(project("gate", token))
    return beta, beta
  erase = layer.max_erase * sigmoid(project("erase_gate", token))
  return sigmoid(project("write_gate", token)), erase


def log_decay(layer, params, token, h):
  if layer.decay is None:
    return 0
  if layer.decay_from == "fixed":
    return np.log(1 - 2.0 ** (-5 - h))
  group = params["decay_gate"]
  if layer.decay_from == "learned":
    return -softplus(group["bias"][h])
  z = np.tensordot(token, group["kernel"][:, h], 1) + group["bias"][h]
  return -np.exp(group["scale"][h]) * softplus(z)
