"""The same computations in PyTorch, where it is installed.

The loops are RD and WR as PyTorch users would write them, token by token, with
automatic gradients. They use our layers' parameters, so the results agree.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from benchmarks.candidate import Candidate
from nam_jax.ops import tape

try:
  import torch
except ImportError:
  torch = None

ABSENT = "PyTorch is not installed: its candidates are left out"


def version() -> str | None:
  """PyTorch's version; None if it is not installed."""
  return None if torch is None else torch.__version__


def sequence_candidates(
  task: str, inputs: tuple[np.ndarray, ...]
) -> dict[str, Callable[[], Candidate]]:
  """Name -> what makes it: causal attention, and a loop over the tokens.

  Args:
    task: "forward" or "forward+gradient".
    inputs: `sequence.Inputs`.
  """
  if torch is None:
    return {}
  heads_first = [np.swapaxes(array, 1, 2) for array in inputs[:3]]
  seeds = (None, None)
  if task != "forward":
    seeds = (heads_first[2], inputs[2])
  make = functools.partial
  return {
    "torch attention": make(_candidate, attention, heads_first, seeds[0]),
    "torch loop": make(_candidate, memory_loop, inputs, seeds[1]),
  }


def machine_candidates(
  name: str, params: Mapping[str, Any], x: np.ndarray, seed: np.ndarray
) -> dict[str, Candidate]:
  """The machine with this name and our parameters, if there is one here.

  Args:
    name: a name in `machines.make_machines`.
    params: the layer's parameters.
    x: its inputs [b s d].
    seed: the gradient of its outputs [b s d].
  """
  if torch is None or name not in MACHINES:
    return {}
  title, function = MACHINES[name]
  leaves, tree = jax.tree.flatten(jax.tree.map(np.asarray, params))

  def run(x, *leaves):
    return function(jax.tree.unflatten(tree, leaves), x)

  return {title: _candidate(run, [x, *leaves], seed)}


def _candidate(function, arrays, seed):
  """Runs function, and takes its gradient for all arrays if seed is given."""
  tensors = [_tensor(array) for array in arrays]
  if seed is None:
    return Candidate(torch.no_grad()(functools.partial(function, *tensors)))
  tensors = [tensor.requires_grad_() for tensor in tensors]
  seed = _tensor(seed)

  def run():
    result = function(*tensors)
    return result.detach(), torch.autograd.grad(result, tensors, seed)

  return Candidate(run)


def _tensor(array):
  return torch.from_numpy(np.array(array, np.float32, order="C"))


def attention(q, k, v):
  """PyTorch's own causal attention, [b h s d]."""
  return torch.nn.functional.scaled_dot_product_attention(
    q, k, v, is_causal=True
  )


def read(M, q):
  """M q."""
  return torch.matmul(M, q[..., None])[..., 0]


def write(M, k, v, p_w, p_e):
  """M + p_w v kᵀ - p_e M k kᵀ."""
  u = p_w[..., None] * v - p_e[..., None] * read(M, k)
  return M + u[..., :, None] * k[..., None, :]


def unit(x):
  """x / |x|."""
  return torch.nn.functional.normalize(x, dim=-1)


def memory_loop(q, k, v, p_r, p_w, p_e):
  """`nam_jax.memory_scan`, [b s h d]."""
  b, _, h, d = k.shape
  M = k.new_zeros(b, h, v.shape[-1], d)
  outputs = []
  for q_t, k_t, v_t, r, w, e in _tokens(q, k, v, p_r, p_w, p_e):
    M = write(M, k_t, v_t, w, e)
    outputs.append(r[..., None] * read(M, q_t))
  return torch.stack(outputs, 1)


def _tokens(*sequences):
  """Token by token; `unbind` has a gradient of linear cost, while those of
  slices add up arrays of the whole length."""
  return zip(*(array.unbind(1) for array in sequences), strict=True)


def lsam_loop(params, x):
  """`nam_jax.LSAM`, one direction."""
  W_x, W_h, bias = (params["forward"][n] for n in _LSAM)
  b, (h, v, _, o) = x.shape[0], W_h.shape
  z_x = x @ W_x.flatten(1) + bias.flatten()
  M, hidden = x.new_zeros(b, h, v, v), x.new_zeros(b, h * v)
  outputs = []
  for (z_t,) in _tokens(z_x):
    z = (z_t + hidden @ W_h.reshape(h * v, h * o)).reshape(b, h, o)
    q, k, value, gates = z.split([v, v, v, 2], -1)
    p_r, p_w = gates.sigmoid().unbind(-1)
    M = write(M, unit(k), value, p_w, p_w)
    hidden = (p_r[..., None] * read(M, unit(q))).flatten(1)
    outputs.append(hidden)
  return torch.stack(outputs, 1)


_LSAM = ("input", "recurrent", "bias")


def turing_machine_loop(params, x, cells=32):
  """`nam_jax.NAMTuringMachine` with its four transitions on a new tape."""
  names = [t.name for t in tape.TRANSITIONS]
  project = functools.partial(_project, params, x)
  value, key, query = (project(n) for n in ("value", "key", "query"))
  key, query = unit(key), unit(query)
  actions = project("action").softmax(-1)  # [b s 2 h a]
  p_r, p_w = project("gate").sigmoid().unbind(-1)
  b, _, h, v = value.shape
  T, K = x.new_zeros(b, h, v, cells), x.new_zeros(b, h, v, cells)
  heads = x.new_zeros(2, b, h, cells)
  heads[..., 0] = 1
  outputs = []
  for x_t, k_t, q_t, r, w, p in _tokens(value, key, query, p_r, p_w, actions):
    T = write(T, heads[1], x_t, w, w)
    K = write(K, heads[1], k_t, w, w)
    outputs.append(r[..., None] * read(T, heads[0]))
    found = read(K.transpose(-1, -2), q_t)
    moved = {
      "left": heads.roll(-1, -1),
      "right": heads.roll(1, -1),
      "no-op": heads,
      "jump": found.expand_as(heads),
    }
    p = p.movedim(1, 0)  # [2 b h a]
    heads = unit(sum(p[..., i, None] * moved[n] for i, n in enumerate(names)))
  reads = torch.stack(outputs, 1)
  return torch.einsum("bshv,hvd->bsd", reads, params["out"]["kernel"])


def _project(params, x, name):
  kernel, bias = params[name]["kernel"], params[name]["bias"]
  flat = x @ kernel.flatten(1) + bias.flatten()
  return flat.reshape(*x.shape[:2], *bias.shape)


def lstm(params, x):
  """`torch.nn.LSTM` with the parameters of `nam_jax.LSTM`."""
  kernel, recurrent = params["input_kernel"], params["recurrent_kernel"]
  bias = params["bias"]
  weights = [kernel.T, recurrent.T, bias, torch.zeros_like(bias)]
  zeros = x.new_zeros(1, x.shape[0], recurrent.shape[0])
  weights = [weight.contiguous() for weight in weights]
  outputs, _, _ = torch.lstm(
    x, (zeros, zeros), weights, True, 1, 0.0, False, False, True
  )
  return outputs


# Name of the machine -> name of the candidate, function of (params, x).
MACHINES = {
  "lsam": ("lsam, torch loop", lsam_loop),
  "nam_tm": ("nam_tm, torch loop", turing_machine_loop),
  "lstm": ("lstm, torch.nn.LSTM", lstm),
}
