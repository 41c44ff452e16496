# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Reading and writing a memory
#
# A neural attention memory is a matrix $M$. One equation reads, one writes:
#
# $$RD(M, q, p_r) = p_r M q$$
# $$WR(M, k, v, p_w, p_e) = M + p_w\, v k^\top - p_e\, M k k^\top$$
#
# You will see a memory being written, overwritten and erased; the paper's two
# theorems at work; what is lost when keys look alike, and how much fits in;
# what compiling gains; and a gradient that passes through a write.

# %%
import sys

import jax
import jax.numpy as jnp
import numpy as np

import nam_jax
from nam_jax import viz

sys.path.extend([".", ".."])  # the checkout, from its root or from here
from benchmarks import timing

# %matplotlib inline

rng = np.random.default_rng(0)


def normal(*shape):
  return jnp.asarray(rng.standard_normal(shape, np.float32))


# %% tags=["parameters"]
WIDTHS = (16, 32, 64)  # of the keys, for the capacity curves
MOST_PAIRS = 256  # stored in one memory
WRITES = 100  # to be timed
SHOW_TIMES = False  # True: print them; they are different every time
UPDATES = 60  # of the gradient descent at the end

# %% [markdown]
# ## One write, one read
#
# The memory has a column per key component and a row per value component. A key
# is a vector of length one. The simplest keys are the axes, $(1, 0, 0, \dots)$
# and so on: then a write fills one column.

# %%
axes = jnp.eye(6)
value_a = jnp.array([1.0, -2.0, 3.0, 0.5])
value_b = jnp.array([-1.5, 1.0, 0.0, 2.0])

empty = jnp.zeros((4, 6))  # [value width, key width]
one = nam_jax.write(empty, axes[1], value_a)
two = nam_jax.write(one, axes[4], value_b)

maps = {"empty": empty, "a under key 2": one, "and b under key 5": two}
viz.heat_maps(maps, "key component", "value component")

# %%
for number, value in ((2, value_a), (5, value_b), (1, jnp.zeros(4))):
  found = nam_jax.read(two, axes[number - 1])
  print(f"read key {number}: {found}")
  assert jnp.array_equal(found, value)

# %% [markdown]
# ## Add, replace, erase
#
# Key 2 holds a. Writing b under the same key can do three things. The write
# probability $p_w$ says how much of the new value comes in, the erase
# probability $p_e$ how much of the old one goes out.

# %%
added = nam_jax.write(one, axes[1], value_b, p_w=1.0, p_e=0.0)
replaced = nam_jax.write(one, axes[1], value_b, p_w=1.0, p_e=1.0)
mixed = nam_jax.write(one, axes[1], value_b, p_w=0.5, p_e=0.5)
erased = nam_jax.write(one, axes[1], value_b, p_w=0.0, p_e=1.0)
assert jnp.array_equal(added[:, 1], value_a + value_b)
assert jnp.array_equal(replaced[:, 1], value_b)
assert jnp.array_equal(mixed[:, 1], (value_a + value_b) / 2)
assert not erased.any()

maps = {
  "before": one[:, :3],
  "added\n$p_w=1, p_e=0$": added[:, :3],
  "replaced\n$p_w=1, p_e=1$": replaced[:, :3],
  "half of each\n$p_w=p_e=0.5$": mixed[:, :3],
  "erased\n$p_w=0, p_e=1$": erased[:, :3],
}
viz.heat_maps(maps, "key 1, 2, 3", "value component")

# %% [markdown]
# ## Theorem 1: what was written last is what is read
#
# With $p_w = p_e = 1$ this holds for every key of length one and whatever the
# memory held before: $M'k = Mk + v k^\top k - M k k^\top k = v$. Here are a
# thousand memories full of noise.

# %%
noise, values = normal(1000, 4, 6), normal(1000, 4)
keys = nam_jax.unit(normal(1000, 6))

reads = nam_jax.read(nam_jax.write(noise, keys, values), keys)
print(f"largest error of 1,000 reads: {jnp.abs(reads - values).max():.4f}")
assert jnp.allclose(reads, values, atol=1e-5)

# %% [markdown]
# ## Theorem 2: orthonormal keys do not disturb each other
#
# Keys need not be axes. Turn all six by the same random rotation: every write
# now touches every column, and the values can no longer be seen in the memory.
# But each key still reads its own value. The memory is $\sum_i v_i k_i^\top$.

# %%
rotated, _ = jnp.linalg.qr(normal(6, 6))
values, memory = normal(6, 4), empty
for key, value in zip(rotated, values, strict=True):
  memory = nam_jax.write(memory, key, value)
reads = jnp.stack([nam_jax.read(memory, key) for key in rotated])
assert jnp.allclose(reads, values, atol=1e-5)
assert jnp.allclose(memory, values.T @ rotated, atol=1e-5)

maps = {"six values": values.T, "the memory": memory, "six reads": reads.T}
viz.heat_maps(maps, "pair, or key component", "value component")

# %% [markdown]
# ## When keys stop being orthogonal
#
# Write a under one key, then b under another, and let the second key turn
# towards the first. Their cosine says how much they have in common. The error
# is the distance between what is read and the value, relative to its length.


# %%
def error(memory, key, value):
  wrong = nam_jax.read(memory, key) - value
  return float(jnp.linalg.norm(wrong) / jnp.linalg.norm(value))


def two_errors(cosine, p_e):
  turned = cosine * axes[0] + (1 - cosine**2) ** 0.5 * axes[1]
  memory = nam_jax.write(empty, axes[0], value_a)
  memory = nam_jax.write(memory, turned, value_b, p_e=p_e)
  return error(memory, axes[0], value_a), error(memory, turned, value_b)


cosines = jnp.linspace(0, 1, 21).tolist()
panels = {
  title: {
    f"$p_e$ = {p_e}": {c: two_errors(c, p_e)[which] for c in cosines}
    for p_e in (0, 1)
  }
  for which, title in enumerate(("the older value, a", "the newer value, b"))
}
assert max(panels["the newer value, b"]["$p_e$ = 1"].values()) < 1e-5
viz.curves(panels, xlabel="cosine of the two keys", ylabel="error of the read")

# %% [markdown]
# The newer value is read without error if the write erases ($p_e = 1$): this is
# Theorem 1. The more alike the keys are, the more the older value suffers. At
# cosine 1 they are one key, which holds b alone or the sum of both.

# %% [markdown]
# ## How much fits in
#
# Random keys are nearly orthogonal if they are wide. So a memory can hold many
# pairs, with an error that grows with their number. `memory_scan` makes a whole
# sequence of writes; reading all keys afterwards shows what is left.


# %%
def errors(width, number, p_e):
  """Error of the read of each pair, the oldest first; over 20 memories."""
  k, v = nam_jax.unit(keys[width]), values[width]
  is_written = jnp.arange(MOST_PAIRS) < number
  mask = jnp.broadcast_to(is_written, k.shape[:2])
  _, memory = nam_jax.memory_scan(k, k, v, p_e=jnp.float32(p_e), mask=mask)
  wrong = jnp.einsum("bhvk,bshk->bshv", memory, k) - v
  square = jnp.sum(wrong**2, (0, 2, 3)) / jnp.sum(v**2, (0, 2, 3))
  return square[:number] ** 0.5


def by_width(measure):
  return {
    f"$p_e$ = {p_e}": {
      f"{width} wide": {n: float(measure(width, n, p_e)) for n in numbers}
      for width in WIDTHS
    }
    for p_e in (0, 1)
  }


# [memories, pairs, heads, width]
keys = {width: normal(20, MOST_PAIRS, 1, width) for width in WIDTHS}
values = {width: normal(20, MOST_PAIRS, 1, width) for width in WIDTHS}
numbers = [2**i for i in range(MOST_PAIRS.bit_length())]
capacity = by_width(lambda *args: errors(*args).mean())
viz.curves(capacity, "pairs written", "mean error of a read", log="x")

# %% [markdown]
# Without erasing, the other $n - 1$ pairs are noise of relative length
# $\sqrt{(n - 1) / d}$, where $d$ is the width of the keys: four times the pairs
# need four times the width. The error has no limit. With erasing it has one:
# a forgotten pair reads as something unrelated, of about its own length.

# %%
width, number = WIDTHS[-1], MOST_PAIRS
measured = capacity["$p_e$ = 0"][f"{width} wide"][number]
predicted = ((number - 1) / width) ** 0.5
print(f"{number} pairs: {measured:.2f}, predicted {predicted:.2f}")
assert abs(measured / predicted - 1) < 0.1
assert max(max(line.values()) for line in capacity["$p_e$ = 1"].values()) < 1.5

# %% [markdown]
# An erasing memory forgets the oldest pairs first. The other one is equally bad
# at all of them.

# %%
by_age = by_width(lambda width, n, p_e: errors(width, MOST_PAIRS, p_e)[-n])
for line in by_age["$p_e$ = 1"].values():
  assert line[1] < 1e-4  # the newest, by Theorem 1
  assert line[1] < line[8] < line[64]
viz.curves(by_age, "age of the pair, in writes", "error of its read", log="x")

# %% [markdown]
# ## What compiling gains
#
# The same writes in three ways: one call after the other, the call compiled by
# `jax.jit`, and one compiled program for the whole sequence.


# %%
def one_by_one(write):
  memory = jnp.zeros((32, 32))
  for key, value in zip(k[0, :, 0], v[0, :, 0], strict=True):
    memory = write(memory, key, value)
  return memory


k, v = nam_jax.unit(normal(1, WRITES, 1, 32)), normal(1, WRITES, 1, 32)
compiled = jax.jit(nam_jax.write)
ways = {
  "write": lambda: one_by_one(nam_jax.write),
  "jax.jit(write)": lambda: one_by_one(compiled),
  "memory_scan": lambda: nam_jax.memory_scan(k, k, v)[1][0, 0],
}
seconds = timing.race(ways, rounds=2)
for name, best in seconds.items():
  assert jnp.allclose(ways[name](), ways["write"](), atol=1e-4)
  if SHOW_TIMES:
    print(f"{name:15} {1e3 * best:8.1f} ms for {WRITES} writes")
print("fastest first:", ", ".join(sorted(seconds, key=seconds.get)))
assert seconds["memory_scan"] < seconds["jax.jit(write)"] < seconds["write"]

# %% [markdown]
# ## A gradient through a write
#
# Both primitives are differentiable, so a network can learn *where* to write.
# Two pairs share a memory that adds without erasing, and their keys begin as
# nearly the same. The loss is the squared error of reading both back. We follow
# its gradient, which flows through the reads and the writes into the keys.


# %%
both = jnp.stack([value_a, value_b])


def loss(keys):
  keys, memory = nam_jax.unit(keys), empty
  for key, value in zip(keys, both, strict=True):
    memory = nam_jax.write(memory, key, value, p_e=0.0)
  reads = nam_jax.read(jnp.stack([memory, memory]), keys)
  return jnp.sum((reads - both) ** 2)


step = jax.jit(lambda keys: keys - 0.002 * jax.grad(loss)(keys))
keys = jnp.stack([axes[0], nam_jax.unit(axes[0] + 0.3 * axes[1])])
progress = {}
for update in range(UPDATES + 1):
  progress[update] = float(jnp.dot(*nam_jax.unit(keys)))
  keys = step(keys)

panels = {"learning where to write": {"two keys": progress}}
viz.curves(panels, xlabel="updates", ylabel="cosine")

# %% [markdown]
# The keys have moved apart until they are orthogonal, and both values are read
# without error: the gradient has found Theorem 2.

# %%
print(f"cosine from {progress[0]:.2f} to {abs(progress[UPDATES]):.2f}")
assert abs(progress[UPDATES]) < 0.01
assert loss(keys) < 1e-3

# %% [markdown]
# Next: [From memory to attention](2_memory_to_attention.ipynb).
