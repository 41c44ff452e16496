"""Runs an exported step over many tokens, with nothing but JAX.

`python stream_tokens.py step.jax tokens.npy 1000000 outputs.npy` calls it for
one token after another, starting over when they run out, and prints the wall
and CPU time per token and the resident memory, for the first and the last
10,000 tokens. The outputs are those of the first pass over the tokens.
"""

import json
import pathlib
import sys
import time

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

WINDOW = 10_000


def resident_mib() -> float:
  pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
  return pages * 4096 / 2**20


def main(program: str, tokens: str, count: str, outputs: str) -> None:
  exported = jax.export.deserialize(pathlib.Path(program).read_bytes())
  step = jax.jit(exported.call, donate_argnums=0)
  state = [jnp.zeros(a.shape, a.dtype) for a in exported.in_avals[:-1]]
  shapes = [a.shape for a in state]
  tokens, total, kept, report = np.load(tokens), int(count), [], []
  window = min(WINDOW, total // 2)
  warm = [a.copy() for a in state]
  for _ in range(3):  # also with its own state, which may be compiled again
    _, warm = step(warm, tokens[0])
  for start in range(0, total, window):
    began = np.array([time.perf_counter(), time.process_time()])
    for t in range(start, min(start + window, total)):
      output, state = step(state, tokens[t % len(tokens)])
      output = np.asarray(output)
      if t < len(tokens):
        kept.append(output)
    passed = [time.perf_counter(), time.process_time()] - began
    wall, cpu = (1e6 * passed / (t + 1 - start)).tolist()
    mib = resident_mib()
    report.append({"us_per_token": wall, "cpu_us_per_token": cpu, "mib": mib})
    assert [a.shape for a in state] == shapes
  np.save(outputs, np.stack(kept))
  finite = all(bool(jnp.isfinite(a).all()) for a in state)
  print(
    json.dumps(
      {
        "first": report[0],
        "last": report[-1],
        "finite": finite,
        "modules": sorted({name.split(".")[0] for name in sys.modules}),
      }
    )
  )


if __name__ == "__main__":
  main(*sys.argv[1:])
