"""The DNC step by step, from the Methods section of Graves et al. 2016.

One sequence, loops over slots and heads, float64. `params` are those of
`nam_jax.baselines.DNC`.
"""

import numpy as np


def sigmoid(x):
  return 1 / (1 + np.exp(-x))


def softmax(x):
  e = np.exp(x - np.max(x))
  return e / np.sum(e)


def oneplus(x):
  return 1 + np.log1p(np.exp(x))


def cosine(a, b):
  norms = np.linalg.norm(a) * np.linalg.norm(b)
  return a @ b / norms if norms > 0 else 0.0


def content(memory, key, strength):
  return softmax(np.array([strength * cosine(key, row) for row in memory]))


def allocation(usage):
  free_list = sorted(range(len(usage)), key=lambda i: usage[i])
  a = np.zeros(len(usage))
  product = 1.0
  for slot in free_list:
    a[slot] = (1 - usage[slot]) * product
    product *= usage[slot]
  return a


def lstm(params, cell, hidden, x):
  gates = {}
  for gate in "ifgo":
    gates[gate] = (
      x @ params["i" + gate]["kernel"]
      + hidden @ params["h" + gate]["kernel"]
      + params["h" + gate]["bias"]
    )
  cell = sigmoid(gates["f"]) * cell + sigmoid(gates["i"]) * np.tanh(gates["g"])
  return cell, sigmoid(gates["o"]) * np.tanh(cell)


def cut_interface(vector, num_reads, width):
  """The parts of ξ in the paper's order, bounded to their ranges."""
  sizes = [("k_r", num_reads * width), ("beta_r", num_reads)]
  sizes += [("k_w", width), ("beta_w", 1), ("e", width), ("v", width)]
  sizes += [("f", num_reads), ("g_a", 1), ("g_w", 1), ("pi", 3 * num_reads)]
  part, start = {}, 0
  for name, size in sizes:
    part[name] = vector[start : start + size]
    start += size
  assert (
    start == len(vector) == width * num_reads + 3 * width + 5 * num_reads + 3
  )
  part["k_r"] = part["k_r"].reshape(num_reads, width)
  part["pi"] = [softmax(row) for row in part["pi"].reshape(num_reads, 3)]
  for name in ("beta_r", "beta_w"):
    part[name] = oneplus(part[name])
  for name in ("e", "f", "g_a", "g_w"):
    part[name] = sigmoid(part[name])
  for name in ("beta_w", "g_a", "g_w"):
    part[name] = part[name][0]
  return part


def access(state, xi):
  """Usage, write, links, read; returns the new memory part of the state."""
  N, R = len(state["usage"]), len(state["read_weights"])
  psi = np.ones(N)
  for i in range(R):
    psi *= 1 - xi["f"][i] * state["read_weights"][i]
  u, w = state["usage"], state["write_weights"]
  usage = (u + w - u * w) * psi

  c_w = content(state["memory"], xi["k_w"], xi["beta_w"])
  a = allocation(usage)
  w = xi["g_w"] * (xi["g_a"] * a + (1 - xi["g_a"]) * c_w)
  memory = state["memory"] * (1 - np.outer(w, xi["e"])) + np.outer(w, xi["v"])

  link = np.zeros((N, N))
  for i in range(N):
    for j in range(N):
      if i != j:
        link[i, j] = (1 - w[i] - w[j]) * state["link"][i, j]
        link[i, j] += w[i] * state["precedence"][j]
  precedence = (1 - np.sum(w)) * state["precedence"] + w

  read_weights, reads = [], []
  for i in range(R):
    before = state["read_weights"][i]
    weighting = xi["pi"][i][0] * (link.T @ before)
    weighting += xi["pi"][i][1] * content(memory, xi["k_r"][i], xi["beta_r"][i])
    weighting += xi["pi"][i][2] * (link @ before)
    read_weights.append(weighting)
    reads.append(memory.T @ weighting)
  return {
    "memory": memory,
    "usage": usage,
    "link": link,
    "precedence": precedence,
    "write_weights": w,
    "read_weights": np.array(read_weights),
    "reads": np.array(reads),
  }


def run(params, x, num_slots, width, num_reads):
  """Outputs [s d] and the final state of one sequence x [s d]."""
  params = params["cell"]
  d = len(params["controller"]["hi"]["bias"])
  state = {
    "cell": np.zeros(d),
    "hidden": np.zeros(d),
    "memory": np.zeros((num_slots, width)),
    "usage": np.zeros(num_slots),
    "link": np.zeros((num_slots, num_slots)),
    "precedence": np.zeros(num_slots),
    "write_weights": np.zeros(num_slots),
    "read_weights": np.zeros((num_reads, num_slots)),
    "reads": np.zeros((num_reads, width)),
  }
  outputs = []
  for token in x:
    chi = np.concatenate([token, state["reads"].ravel()])
    cell, hidden = lstm(
      params["controller"], state["cell"], state["hidden"], chi
    )
    vector = hidden @ params["interface"]["kernel"]
    vector = vector + params["interface"]["bias"]
    state = access(state, cut_interface(vector, num_reads, width))
    state |= {"cell": cell, "hidden": hidden}
    seen = np.concatenate([hidden, state["reads"].ravel()])
    output = seen @ params["output"]["kernel"] + params["output"]["bias"]
    outputs.append(output)
  return np.array(outputs), state
