"""Algorithm 1 of the paper, one support after the other."""

import jax.numpy as jnp

from nam_jax.ops import memory


def write_all(base, x, p_w, p_e, mask, accumulate):
  """Rows of all classes before normalisation; see fewshot/writes.py."""
  c, (n, k, d) = base.shape[0], x.shape
  W = jnp.concatenate([base, jnp.zeros((n, d), base.dtype)])
  total = {"sum": jnp.zeros_like(W), "delta": W, "scan": W}[accumulate]
  for i in range(n):
    shots = int(mask[i].sum())
    for j in range(k):
      if not mask[i, j]:
        continue
      start = total if accumulate == "scan" else W
      value = jnp.zeros(c + n, base.dtype).at[c + i].set(1)
      written = memory.write(start, x[i, j], value, p_w[i, j], p_e[i, j])
      if accumulate == "scan":
        total = written
      elif accumulate == "sum":
        total = total + written / shots
      else:
        total = total + (written - W) / shots
  return total


def attention_weights(params, base, shown, support):
  """The weight generator's novel rows before normalisation, with loops."""

  def unit(v):
    return v / jnp.linalg.norm(v)

  rows = []
  for shots in support:
    total = jnp.zeros(base.shape[1])
    for x in map(unit, shots):
      query = params["query"]["kernel"].T @ x + params["query"]["bias"]
      scores = jnp.array(
        [
          params["sharpness"] * unit(query) @ unit(key)
          for key, is_shown in zip(params["keys"], shown, strict=True)
          if is_shown
        ]
      )
      weights = jnp.exp(scores - scores.max())
      weights = weights / weights.sum()
      kept = [w for w, is_shown in zip(base, shown, strict=True) if is_shown]
      attended = sum(a * unit(w) for a, w in zip(weights, kept, strict=True))
      total += params["average"] * x + params["attention"] * attended
    rows.append(total / len(shots))
  return jnp.stack(rows)
