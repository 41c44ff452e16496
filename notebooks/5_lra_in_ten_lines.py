# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # The Long Range Arena in ten lines
#
# The Long Range Arena asks how well, and how fast, different kinds of attention
# read long sequences. Here is one of its tasks, ListOps, cut down to a size
# that suits two CPU cores. You will load its config, swap the attention, and
# compare what a short run gives: accuracy and number of parameters and, if you
# like, the time per step.
#
# The expressions are generated: there is nothing to download.

# %%
import contextlib
import io
import sys
import tempfile
import textwrap

import numpy as np

from nam_jax import training, viz
from nam_jax.models import attentions as models

sys.path.extend([".", ".."])  # the checkout, from its root or from here
from command_line import tables
from configs.lra import listops
from lra_tasks import listops_trees, run

# %matplotlib inline

# %% tags=["parameters"]
STEPS = 100  # updates with each attention
TESTS = 2000  # expressions to test on
SHOW_TIMES = False  # True: show the times of steps, different every time
ATTENTIONS = ("softmax", "linear", "nam", "nam_erase")

# %% [markdown]
# ## The task
#
# What is the value of a nested expression of MIN, MAX, MED (the median) and SM
# (the sum modulo 10)? There are ten possible answers. The benchmark's
# expressions have 500 to 2,000 tokens; those of preset `plain` have 10 to 127.

# %%
settings = listops_trees.Settings(
  max_length=128, min_length=10, num_train=2000, num_validation=1, num_test=1
)
drawn = listops_trees.generate(settings)["train"]
commonest = np.bincount(drawn.labels).max() / len(drawn.labels)
print(f"the commonest answer is right for {commonest:.0%}\n")
for tokens, value in zip(drawn.rows()[:3], drawn.labels[:3], strict=True):
  words = " ".join(listops_trees.WORDS[token] for token in tokens)
  print(textwrap.fill(f"{words} = {value}", 76), end="\n\n")

# %% [markdown]
# ## Ten lines
#
# A config file is a Python file; its argument names the attention and the size.
# The rest is the engine behind `train_lra.py`. A run has a folder of its own,
# here a temporary one; its messages go to `log`.

# %%
log = io.StringIO()


def compare(attention):
  config = listops.get_config(f"{attention},plain")
  config.num_steps, config.warmup_steps = STEPS, STEPS // 10
  config.log_every = max(1, STEPS // 10)
  config.task_kwargs.update(num_train=STEPS * config.batch_size)
  config.task_kwargs.update(num_validation=TESTS, num_test=TESTS)
  config = training.from_config_dict(config, run.LRAConfig)
  with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(log):
    experiment = run.make_experiment(config, folder, data_dir="")
    fitted = run.train(experiment)
    return run.measure(experiment, fitted), fitted.history


# %% [markdown]
# Swapping the attention takes one word. These are all that are known:

# %%
print(textwrap.fill(", ".join(models.KINDS), 76))

# %% [markdown]
# ## Compare
#
# Four of them, from the same seed, with the same network around them, on the
# same rows in the same order. This takes a few minutes.

# %%
runs = {attention: compare(attention) for attention in ATTENTIONS}

viz.curves(
  {
    "on the way": {
      attention: {
        row["step"]: 100 * row["accuracy"]
        for row in rows
        if row["kind"] == "train"
      }
      for attention, (_, rows) in runs.items()
    }
  },
  xlabel="updates",
  ylabel="training accuracy (%)",
)

# %%
rows = [["attention", "test accuracy", "parameters"]]
for attention, (results, _) in runs.items():
  accuracy, parameters = results["accuracy"], results["parameters"]
  rows.append([attention, f"{accuracy:.1%}", f"{parameters:,}"])
if SHOW_TIMES:
  rows[0].append("step")
  for row, (results, _) in zip(rows[1:], runs.values(), strict=True):
    row.append(f"{1e3 / results['steps_per_second']:.0f} ms")
print(tables.as_text(rows, markdown=False))

# %% [markdown]
# How to read this: with 2,000 test expressions, an accuracy is known to within
# about two points, and such a short run from one seed says little about which
# attention is better. The cost of a step is clearer, as `SHOW_TIMES` tells:
# `linear` and `nam` are the cheapest even with 128 tokens, and the gap to
# softmax grows with the length, as
# [From memory to attention](2_memory_to_attention.ipynb) shows.
# Bidirectional NAM has exactly the parameters of softmax attention; `nam_erase`
# has a few more, for its gates.

# %%
count = {name: results["parameters"] for name, (results, _) in runs.items()}
gates = count.pop("nam_erase") - count["nam"]
assert gates > 0
assert set(count.values()) == {count["nam"]}

# %% [markdown]
# The README has longer runs, the other tasks, and the sizes of the benchmark.
#
# Next: [What erasing can compute](6_what_erasing_can_compute.ipynb).
