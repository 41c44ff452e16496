"""The Temporal Latent Bottleneck as a loop over blocks, in float64.

Parameters are those of `TemporalLatentEncoder`, one sequence at a time.
"""

import numpy as np


def layer_norm(p, x):
  x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1) + 1e-6)[:, None]
  return x * p["scale"] + p["bias"]


def attend(p, x, context):
  q, k, v = (
    np.einsum("sd,dhk->hsk", inputs, p[name]["kernel"])
    for inputs, name in ((x, "query"), (context, "key"), (context, "value"))
  )
  weights = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(q.shape[-1]))
  read = weights @ v / weights.sum(-1, keepdims=True)
  return np.einsum("hsv,hvd->sd", read, p["out"]["kernel"])


def mlp(p, x):
  x = x @ p["Dense_0"]["kernel"] + p["Dense_0"]["bias"]
  x = x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
  return x @ p["Dense_1"]["kernel"] + p["Dense_1"]["bias"]


def self_block(p, x):
  y = layer_norm(p["LayerNorm_0"], x)
  x = x + attend(p["SelfAttention_0"], y, y)
  return x + mlp(p["MLP_0"], layer_norm(p["LayerNorm_1"], x))


def cross_block(p, x, context):
  context = layer_norm(p["context_norm"], context)
  x = x + attend(p["attention"], layer_norm(p["norm"], x), context)
  return x + mlp(p["mlp"], layer_norm(p["mlp_norm"], x))


def sinusoids(length, width):
  angles = np.arange(length)[:, None] / 1e4 ** (
    np.arange(width) // 2 * 2 / width
  )
  return np.where(np.arange(width) % 2, np.cos(angles), np.sin(angles))


def encode(params, x, real, encoder):
  """State tokens [n d] of one sequence x [s d] with the mask real [s].

  Padded tokens are left out of the blocks; `encoder` has the sizes.
  """
  (s, d), c = x.shape, encoder.block_size
  place = np.arange(s)
  if not encoder.use_global_pos_encoding:
    place = place % c
  table = sinusoids(s, d)
  if encoder.positions == "learned":
    table = params["posembed_input"]["pos_embedding"][0]
  x = x + table[place]
  state = np.zeros((encoder.num_state_tokens, d))
  for start in range(0, s, c):
    tokens = [t for t in range(start, min(start + c, s)) if real[t]]
    if not tokens:
      continue
    block, state = x[tokens], state + sinusoids(len(state), d)
    for i in range(encoder.num_cross_layers_input_updater):
      name = f"horizontal_block_{i}"
      for j in range(encoder.self_to_cross_ratio_input_updater):
        block = self_block(params[f"{name}_self_{j}"], block)
      block = cross_block(params[f"{name}_cross"], block, state)
    for i in range(encoder.num_cross_layers_state_updater):
      state = cross_block(params[f"vertical_block_{i}_cross"], state, block)
  return layer_norm(params["encoder_norm"], state)
