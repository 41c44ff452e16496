# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # What erasing can compute
#
# A write with erasing multiplies the memory by the matrix I - p_e k kᵀ. What a
# memory can compute along a sequence depends on the eigenvalues of this matrix,
# and so on how large p_e may be: up to 1, it forgets; up to 2, it can also turn
# around.
#
# You will see the eigenvalues, build a memory that computes parity by hand, and
# train two small models, one for each limit: one learns parity for any length,
# the other cannot. Then you will see what the last value of a key has to do
# with erasing. All of this takes about two minutes on two cores.

# %%
import contextlib
import functools
import io
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np

import nam_jax
from nam_jax import training, viz

sys.path.extend([".", ".."])  # the checkout, from its root or from here
from algorithmic import data, run
from configs.algorithmic import state_tracking

# %matplotlib inline

# %% tags=["parameters"]
STEPS = 300  # updates
PAIRS = (1, 2, 4, 8, 16, 32, 64)  # to recall
IS_FULL_RUN = True  # a shorter one does not learn the task

# %% [markdown]
# ## The eigenvalues
#
# The key k has length 1. Along k, I - p_e k kᵀ multiplies by 1 - p_e; in all
# other directions, by 1.

# %%
key = nam_jax.unit(jnp.array([1.0, 2.0, 2.0, 0.0]))


def eigenvalues(p_e):
  return np.linalg.eigvalsh(np.eye(4) - p_e * np.outer(key, key))


limits = [float(p_e) for p_e in np.linspace(0, 2, 9)]
viz.curves(
  {
    "eigenvalues of I - p_e k kᵀ": {
      "along k": {p_e: eigenvalues(p_e).min() for p_e in limits},
      "elsewhere": {p_e: eigenvalues(p_e).max() for p_e in limits},
    }
  },
  xlabel="p_e",
  ylabel="eigenvalue",
)

# %% [markdown]
# ## Parity by hand
#
# To know whether the number of ones is odd, one bit of memory is enough: every
# one flips it. With p_e = 2 and nothing to write, a one multiplies what the key
# holds by -1. A zero leaves it alone.

# %%
bits = np.array([1, 0, 1, 1, 0, 0, 1, 0, 1, 1])
M = nam_jax.write(jnp.zeros((1, 4)), key, jnp.ones(1))  # holds 1: even
signs = []
for bit in bits:
  if bit:
    M = nam_jax.write(M, key, jnp.zeros(1), p_w=0.0, p_e=2.0)
  signs.append(round(float(nam_jax.read(M, key)[0])))
print("bits ", *(f"{bit:2}" for bit in bits))
print("holds", *(f"{sign:2}" for sign in signs))
assert [sign < 0 for sign in signs] == list(np.cumsum(bits) % 2 == 1)

# %% [markdown]
# With p_e up to 1, no product of such matrices changes a sign. It can only
# shrink what is there, so the memory forgets where it should flip.
#
# ## Parity, learned
#
# These are two NAM-Transformers with two layers of width 64. They see 3 to 40
# bits, and are tested on up to 256. They differ only in the limit of p_e.

# %%
folder = tempfile.TemporaryDirectory()


def learn(limit):
  config = state_tracking.get_config("parity,nam")
  config.model_kwargs.max_erase = limit
  config.num_steps = STEPS
  config.warmup_steps = STEPS // 10
  config.eval_every = config.checkpoint_every = STEPS
  config.log_every = max(1, STEPS // 20)
  config = training.from_config_dict(config, run.AlgorithmicConfig)
  experiment = run.make_experiment(config, f"{folder.name}/{limit}")
  with contextlib.redirect_stdout(io.StringIO()):
    fitted = run.train(experiment)
  return experiment, fitted


runs = {limit: learn(limit) for limit in (1, 2)}

viz.curves(
  {
    "training": {
      f"p_e up to {limit}": {
        row["step"]: 100 * row["sequence_accuracy"]
        for row in fitted.history
        if row["kind"] == "train"
      }
      for limit, (_, fitted) in runs.items()
    }
  },
  xlabel="updates",
  ylabel="right answers (%)",
)

# %%
LENGTHS = 20, 40, 80, 160, 256
tests = {}
for limit, (experiment, fitted) in runs.items():
  predict = functools.partial(experiment.predict, fitted.state)
  tests[limit] = {}
  for length in LENGTHS:
    sample = data.sweep_set(experiment.task, length)
    right = predict(sample.inputs, sample.mask) == sample.targets
    tests[limit][length] = 100 * float(right[sample.loss_mask].mean())

viz.curves(
  {
    "trained on 3 to 40 bits": {
      f"p_e up to {limit}": by_length for limit, by_length in tests.items()
    }
  },
  xlabel="bits",
  ylabel="right answers (%)",
  log="x",
)

# %%
if IS_FULL_RUN:
  assert min(tests[2].values()) > 95
  assert max(tests[1].values()) < 75

# %% [markdown]
# ## What it has learned
#
# The erase gate of the first layer, seen from the bits: 1 - p_e is the
# eigenvalue along the key, one number for each head. In one head, ones have an
# eigenvalue near -1 (flip), and zeros a positive one (the sign stays).

# %%
experiment, fitted = runs[2]
sample = data.sweep_set(experiment.task, 40, size=64)
_, seen = experiment.model.apply(
  {"params": fitted.state.params},
  sample.inputs,
  sample.mask,
  capture_intermediates=True,
)
block = "encoderblock_0"
x = seen["intermediates"]["core"][block]["LayerNorm_0"]["__call__"][0]
gate = fitted.state.params["core"][block]["NAMAttention_0"]["erase_gate"]
p_e = 2 * jax.nn.sigmoid(x @ gate["kernel"] + gate["bias"])
eigenvalue = {
  bit: np.asarray(1 - p_e)[sample.inputs == bit].mean(axis=0) for bit in (0, 1)
}

viz.heat_maps(
  {"eigenvalue along the key": np.stack([eigenvalue[0], eigenvalue[1]])},
  xlabel="head",
  ylabel="bit: 0 above, 1 below",
)

# %%
if IS_FULL_RUN:
  assert min(eigenvalue[1]) < -0.5

# %% [markdown]
# ## The last value counts
#
# Erasing is also what lets a memory replace a value. Here keys are random
# vectors of width 64, and every key gets a value twice. Then the memory is
# asked for the last one. Without erasing, it returns the sum of both; with
# p_e = 1, it forgets the first one. The right value is the one that is nearest.


# %%
@functools.partial(jax.jit, static_argnames="pairs")
def recalled(rng, pairs, p_e):
  """The share of keys whose last value is found."""
  keys = nam_jax.unit(jax.random.normal(rng, (pairs, 64)))
  values = jax.random.normal(jax.random.fold_in(rng, 1), (2 * pairs, 64))
  k = jnp.tile(keys, (2, 1))[None, :, None]
  gate = jnp.full((1, 2 * pairs, 1), p_e)
  v = values[None, :, None]
  _, M = nam_jax.memory(k, k, v, p_w=jnp.ones_like(gate), p_e=gate)
  read = keys @ M[0, 0].T
  distance = ((read[:, None] - values[None]) ** 2).sum(axis=-1)
  return (distance.argmin(axis=1) == pairs + jnp.arange(pairs)).mean()


rngs = jax.random.split(jax.random.key(0), 20)
found = {
  name: {
    pairs: 100 * float(np.mean([recalled(r, pairs, p_e) for r in rngs]))
    for pairs in PAIRS
  }
  for name, p_e in (("no erasing", 0.0), ("p_e = 1", 1.0))
}
viz.curves(
  {"keys written twice": found},
  xlabel="keys",
  ylabel="last value found (%)",
  log="x",
)

# %%
assert found["p_e = 1"][2] > 95
assert found["no erasing"][2] < 75
folder.cleanup()

# %% [markdown]
# The page on algorithmic tasks has both as benchmarks: state tracking, and
# associative recall with trained models.
