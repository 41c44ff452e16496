# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # From memory to attention
#
# Attention lets every token ask all others. A memory does the same if every
# token writes what it has and then reads what it needs. You will see that this
# is attention without the softmax; how the causal and the bidirectional kind
# differ; how a memory that also erases can be computed by blocks of tokens
# instead of token by token; and what each of them costs.
#
# [Reading and writing a memory](1_reading_and_writing.ipynb) comes first.

# %%
import sys

import jax
import jax.numpy as jnp
import numpy as np

import nam_jax
from nam_jax import viz
from nam_jax.ops import triangular

sys.path.extend([".", ".."])  # the checkout, from its root or from here
from benchmarks import timing

# %matplotlib inline

rng = np.random.default_rng(0)


def normal(*shape):
  return jnp.asarray(rng.standard_normal(shape, np.float32))


# %% tags=["parameters"]
LENGTHS = (256, 1024, 4096)  # of the sequences whose cost is measured
ROUNDS = 5  # of timing; the fastest counts
SHOW_TIMES = False  # True: print them; they are different every time

# %% [markdown]
# ## Attention is a sum of writes
#
# Eight tokens, each with a query, a key and a value. Queries and keys have
# length one. The layers of this library shape these arrays as `[batch,
# sequence, heads, width]`. Here there is one sequence and one head, so each is
# also a matrix, with tokens as rows.

# %%
q, k, v = normal(3, 1, 8, 1, 6)
q, k = nam_jax.unit(q), nam_jax.unit(k)
Q, K, V = (array[0, :, 0] for array in (q, k, v))

# %% [markdown]
# Attention forms a matrix of weights, token against token, and takes sums of
# values: $(Q K^\top) V$. Softmax attention first makes the weights positive and
# each row sum to one. Without that, the brackets can move: write all pairs to a
# memory, then read it with every query, $Q (K^\top V)$. The result is the same,
# but a matrix of token against token is never formed.

# %%
weights = Q @ K.T
memory = jnp.zeros((6, 6))
for key, value in zip(K, V, strict=True):
  memory = nam_jax.write(memory, key, value, p_e=0.0)
reads = jnp.stack([nam_jax.read(memory, query) for query in Q])

assert jnp.allclose(memory, V.T @ K, atol=1e-5)
assert jnp.allclose(reads, weights @ V, atol=1e-5)
maps = {
  "softmax of $4 QK^{\\top}$": jax.nn.softmax(4 * weights),
  "a memory's weights, $QK^{\\top}$": weights,
}
viz.heat_maps(maps, "token asked", "token that asks")

# %% [markdown]
# `outer_product_attention` is this: two matrix products, and the normalisation
# of queries and keys.

# %%
attended = nam_jax.outer_product_attention(q, k, v)[0, :, 0]
assert jnp.allclose(attended, reads, atol=1e-5)

# %% [markdown]
# ## Both directions, or only back
#
# In the *bidirectional* form all tokens write before the first one reads. In
# the *causal* form a token reads as soon as it has written: it sees itself and
# those before it. In terms of weights, the upper triangle is cut off. In terms
# of memory, each token reads the memory as it is at that point:

# %%
memories = [jnp.zeros((6, 6))]
for key, value in zip(K, V, strict=True):
  memories.append(nam_jax.write(memories[-1], key, value, p_e=0.0))

maps = {f"after token {t}": memories[t] for t in (1, 2, 4, 8)}
viz.heat_maps(maps, "key component", "value component")

# %%
causal = jnp.stack([nam_jax.read(memories[t + 1], Q[t]) for t in range(8)])
attended = nam_jax.outer_product_attention(q, k, v, causal=True)[0, :, 0]
assert jnp.allclose(causal, jnp.tril(weights) @ V, atol=1e-5)
assert jnp.allclose(causal, attended, atol=1e-5)

maps = {"bidirectional weights": weights, "causal weights": jnp.tril(weights)}
viz.heat_maps(maps, "token asked", "token that asks")

# %% [markdown]
# ## A memory that erases
#
# With $p_e > 0$ a write first looks up what its key holds already, and takes
# part of that away. What it really adds is
#
# $$u_t = p_w v_t - p_e M_{t-1} k_t, \qquad M_t = M_{t-1} + u_t k_t^\top .$$
#
# Now the writes depend on each other, and the brackets cannot be moved. Token
# by token this is `memory_scan`. Here it is in a loop, for gates that differ
# from token to token, from a memory that is not empty.

# %%
p_w, p_e = gates = jax.nn.sigmoid(normal(2, 8))
M = normal(6, 6)

memory, written, read = M, [], []
for t in range(8):
  written.append(p_w[t] * V[t] - p_e[t] * nam_jax.read(memory, K[t]))
  memory = nam_jax.write(memory, K[t], V[t], p_w[t], p_e[t])
  read.append(nam_jax.read(memory, Q[t]))
written, read = jnp.stack(written), jnp.stack(read)

write, erase = gates[:, None, :, None]
outputs, final = nam_jax.memory_scan(
  q, k, v, p_w=write, p_e=erase, initial_memory=M[None, None]
)
assert jnp.allclose(outputs[0, :, 0], read, atol=1e-5)
assert jnp.allclose(final[0, 0], memory, atol=1e-5)

# %% [markdown]
# ## The same without the loop
#
# Let $X$ and $E$ be the values and keys, each row times its gate. The memory
# before token $t$ is $M + \sum_{i<t} u_i k_i^\top$. So the rows $u_t$ of $U$,
# all that is ever added, solve
#
# $$U = X - E M^\top - A\,U, \qquad
# A = \text{strict lower triangle of } E K^\top .$$
#
# $A_{ti}$ says how much token $t$ takes away of what token $i$ has written. The
# system has ones on the diagonal and nothing above it: it can be solved at
# once, $U = T (X - E M^\top)$ with $T = (I + A)^{-1}$.

# %%
X, E = p_w[:, None] * V, p_e[:, None] * K
A = jnp.tril(E @ K.T, -1)
T = triangular.unit_triangular_inverse(A)
assert jnp.allclose(T @ (jnp.eye(8) + A), jnp.eye(8), atol=1e-5)
maps = {"$EK^{\\top}$": E @ K.T, "$A$": A, "$T = (I + A)^{-1}$": T}
viz.heat_maps(maps, "token $i$, earlier", "token $t$")

# %%
U = T @ (X - E @ M.T)
assert jnp.allclose(U, written, atol=1e-5)
maps = {
  "values, gated: $X$": X,
  "looked up: $EM^{\\top}$": E @ M.T,
  "really written: $U$": U,
}
viz.heat_maps(maps, "value component", "token")

# %% [markdown]
# With $U$ known, the reads are causal attention to $U$ instead of $V$, plus
# what the old memory answers; and the new memory is a sum of outer products:
#
# $$R = Q M^\top + P\,U, \quad P = \text{lower triangle of } Q K^\top,
# \qquad M' = M + U^\top K .$$

# %%
P = jnp.tril(Q @ K.T)
R = Q @ M.T + P @ U
assert jnp.allclose(R, read, atol=1e-5)
assert jnp.allclose(M + U.T @ K, memory, atol=1e-5)
maps = {
  "from the old memory: $QM^{\\top}$": Q @ M.T,
  "from the tokens: $PU$": P @ U,
  "read: $R$": R,
}
viz.heat_maps(maps, "value component", "token")

# %% [markdown]
# Two limits are worth a look. Where nothing is erased, or where keys are
# orthogonal, $A = 0$ and $T = I$: plain causal attention. Where all keys are
# the same and everything is erased, $T$ has -1 below its diagonal: each token
# takes away what the one before has written, and only the last value stays.

# %%
same = jnp.broadcast_to(K[:1], (8, 6))
orthogonal = jnp.eye(8)
solved = {
  title: triangular.unit_triangular_inverse(jnp.tril(keys @ keys.T, -1))
  for title, keys in {
    "$T$, orthogonal keys": orthogonal,
    "$T$, random keys": K,
    "$T$, all keys the same": same,
  }.items()
}
assert jnp.allclose(solved["$T$, orthogonal keys"], jnp.eye(8))
expected = jnp.eye(8) - jnp.eye(8, k=-1)
assert jnp.allclose(solved["$T$, all keys the same"], expected, atol=1e-4)
viz.heat_maps(solved, xlabel="token $i$, earlier", ylabel="token $t$")

# %% [markdown]
# ## Chunk after chunk
#
# For a long sequence, $A$ would grow with the square of the length. So the
# sequence is cut into chunks, and the memory is passed from one to the next.
# That is `memory_chunked`, and these lines are the whole idea:


# %%
def chunk(M, tokens):
  Q, K, X, E = tokens
  T = triangular.unit_triangular_inverse(jnp.tril(E @ K.T, -1))
  U = T @ (X - E @ M.T)
  R = Q @ M.T + jnp.tril(Q @ K.T) @ U
  return M + U.T @ K, R


q, k, v = normal(3, 1, 64, 1, 6)
q, k = nam_jax.unit(q), nam_jax.unit(k)
p_w, p_e = jax.nn.sigmoid(normal(2, 1, 64, 1))
rows = q, k, p_w[..., None] * v, p_e[..., None] * k
M, R = jax.lax.scan(
  chunk, jnp.zeros((6, 6)), [x.reshape(8, 8, 6) for x in rows]
)

by_token, last = nam_jax.memory_scan(q, k, v, p_w=p_w, p_e=p_e)
by_chunk, _ = nam_jax.memory_chunked(q, k, v, p_w=p_w, p_e=p_e)
worst = jnp.abs(R.reshape(64, 6) - by_token[0, :, 0]).max()
print(f"64 tokens in 8 chunks; largest difference: {worst:.4f}")
assert jnp.allclose(R.reshape(64, 6), by_token[0, :, 0], atol=1e-5)
assert jnp.allclose(M, last[0, 0], atol=1e-5)
assert jnp.allclose(by_chunk, by_token, atol=1e-5)

# %% [markdown]
# ## What it costs
#
# Softmax attention compares every token with every other: twice the length is
# four times the work, and four times the room for the comparisons. A memory has
# a fixed size, so each token costs the same. Here is the temporary memory of a
# forward and a backward pass, with two heads of width 32, as the compiler plans
# it. (Of the memories, `memory_chunked` is causal and erases, so it does more
# work.)

# %%
forms = {
  "softmax": jax.nn.dot_product_attention,
  "outer_product_attention": nam_jax.outer_product_attention,
  "memory_chunked": lambda q, k, v: nam_jax.memory_chunked(
    nam_jax.unit(q), nam_jax.unit(k), v
  )[0],
}


def gradient(form, length):
  """A compiled gradient with its arguments, ready to run, and its MiB."""
  inputs = normal(3, 1, length, 2, 32)
  loss = jax.jit(jax.grad(lambda inputs: jnp.sum(form(*inputs) ** 2)))
  run = loss.lower(inputs).compile()
  mebibytes = run.memory_analysis().temp_size_in_bytes / 2**20
  return lambda: run(inputs), mebibytes


runs, room = {}, {name: {} for name in forms}
for length in LENGTHS:
  for name, form in forms.items():
    runs[name], room[name][length] = gradient(form, length)

viz.curves({"forward and gradient": room}, "tokens", "MiB, both axes log", "xy")

# %% [markdown]
# Softmax is also slower, at the longest length:

# %%
seconds = timing.race(runs, ROUNDS, seconds=1)
for name, best in seconds.items():
  if SHOW_TIMES:
    print(f"{name:24} {LENGTHS[-1]} tokens: {1e3 * best:7.1f} ms")
  if name != "softmax":
    print(f"{name:24} faster than softmax: {best < seconds['softmax']}")
    assert best < seconds["softmax"]

# %% [markdown]
# `make bench` measures more, and `docs/speed.md` says which form runs where.
#
# Next: [A Turing machine that learns](3_turing_machine.ipynb).
