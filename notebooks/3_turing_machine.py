# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # A Turing machine that learns
#
# A NAM Turing machine has tapes instead of one memory, and heads that move over
# them. A tape is read and written like a neural attention memory, with the
# position of a head as the key. Every move is a mixture of moves, so that
# everything has a gradient.
#
# You will train one to reverse numbers of up to 10 digits, in about two minutes
# on two cores. Then you will look inside: where its heads go at every token,
# which moves they choose, and how far it gets with much longer numbers.

# %%
import contextlib
import functools
import io
import sys
import tempfile

import jax
import numpy as np

import nam_jax
from nam_jax import training, viz
from nam_jax.models import registry as models

sys.path.extend([".", ".."])  # the checkout, from its root or from here
from algorithmic import data, run
from configs.algorithmic import palin

# %matplotlib inline

# %% tags=["parameters"]
STEPS = 800  # updates: two epochs of 25,600 numbers
SWEEP = (20, 40, 60)  # digits, far past training
IS_FULL_RUN = True  # a shorter one does not learn the task

# %% [markdown]
# ## The task
#
# The machine sees a number, followed by as many question marks, `M`. It has to
# replace each of them with a digit. `_` marks the beginning and the end of the
# number, `E` the end of the sequence.

# %%
config = palin.get_config("nam_tm")
config.num_steps = STEPS
config.log_every = max(1, STEPS // 40)
config.eval_every = config.checkpoint_every = max(1, STEPS // 2)
config.warmup_steps = STEPS // 10
config = training.from_config_dict(config, run.AlgorithmicConfig)

folder = tempfile.TemporaryDirectory()
experiment = run.make_experiment(config, folder.name)
print(experiment.task.example("3307"))

# %% [markdown]
# ## The machine
#
# There are two machines, which run one after the other over the same tapes. At
# every token a machine writes with its write head, reads with its read head,
# and moves both: LEFT, RIGHT, NO-OP, or JUMP to the cell whose key fits a
# query. A small bidirectional LSTM decides. What the second machine reads
# becomes the answer. There are four tapes, each with both kinds of head.

# %%
print(config.model_kwargs)
print("moves:", ", ".join(move.name for move in nam_jax.TRANSITIONS))

# %% [markdown]
# ## Training
#
# This is the engine behind `make train`, from the same config and seed. Its
# messages go to `log`.

# %%
log = io.StringIO()
with contextlib.redirect_stdout(log):
  fitted = run.train(experiment)
curve = [row for row in fitted.history if row["kind"] == "train"]

viz.curves(
  {
    "training": {
      "loss of a digit": {r["step"]: r["loss"] for r in curve},
      "share of numbers reversed": {
        r["step"]: r["sequence_accuracy"] for r in curve
      },
    }
  },
  xlabel="updates",
  ylabel="loss, share",
)

# %% [markdown]
# ## Longer numbers
#
# Nothing in the machine knows how long a number is: a longer one needs only
# more tape. The tests are on lengths that it was trained on (`id`), on longer
# ones (`od_easy`, `od_hard`: up to 16 digits), and on much longer ones.

# %%
results = run.measure(experiment, fitted, SWEEP)
_, _, table = run.show(results).partition("\n")
print(table)

# %%
by_length = {int(d): accuracy for d, accuracy in results["by_length"].items()}
viz.accuracy_by_length(
  by_length, data.SPLITS["train"].high, "reversal, NAM Turing machine"
)

# %%
if IS_FULL_RUN:
  assert by_length[16]["sequence_accuracy"] > 0.99
  assert by_length[40]["sequence_accuracy"] > 0.5  # how many: the last bits

# %% [markdown]
# Numbers of up to 16 digits come out right, and most of those with 40. Far
# beyond that most digits are right, but few whole numbers: one wrong digit is
# enough.
#
# Here is a number of 40 digits. The second line has the machine's answer in
# place of the question marks.

# %%
task = experiment.task
long_tape = config.model_kwargs | config.sweep_kwargs
model = models.make_model(config.model, task.vocab_size, **long_tape)
predict = training.make_predict(model, config)

sample = data.sweep_set(task, digits=40, size=1)
answer = predict(fitted.best, sample.inputs, sample.mask)
print(task.show(sample.inputs[0], answer[0], sample.loss_mask[0]))

# %% [markdown]
# ## Inside
#
# The network reports where its heads were at each token. To see what they were
# about to do, we capture the logits of the layers called `action`.


# %%
def watch(digits):
  """Symbols [s], heads [m s 2 h n] and probabilities of moves [m s 2 h a]."""
  rng = np.random.default_rng(0)
  sample = task.sample(rng, np.array([digits]), shift=False)
  apply = functools.partial(
    experiment.test_model.apply, mutable="intermediates"
  )
  params = {"params": fitted.best.params}
  _, caught = jax.jit(apply)(params, sample.inputs, sample.mask)
  core = caught["intermediates"]["core"]
  machines = [core["first_machine"], core["second_machine"]]
  heads = [machine["heads"][0] for machine in machines]
  actions = [machine["actions"][0] for machine in machines]
  symbols = [task.symbols[token] for token in sample.inputs[0]]
  return symbols, np.concatenate(heads), np.concatenate(actions)


symbols, heads, actions = watch(digits=6)
viz.tape_heads(heads, symbols)

# %% [markdown]
# Four tapes, two machines, two heads. Many heads spread over several cells, but
# one read head is sure of its moves at the question marks.

# %%
asked = [t for t, symbol in enumerate(symbols) if symbol == "M"]
sure = actions[:, asked, 0].max(axis=-1).mean(axis=1)  # [machine tape]
machine, tape = np.unravel_index(sure.argmax(), sure.shape)
print(f"machine {machine + 1}, tape {tape + 1}: {sure.max():.0%} sure")


def draw(symbols, heads, actions):
  return viz.tape_actions(
    heads[machine, :, :, tape],
    actions[machine, :, :, tape],
    [move.name for move in nam_jax.TRANSITIONS],
    symbols,
  )


draw(symbols, heads, actions)

# %% [markdown]
# The write head takes one step with every digit. At the question marks the read
# head walks back over the same cells. What was written last is read first: the
# machine has found a stack. In numbers, the cells of both heads:

# %%
n = heads.shape[-1]
cells = np.abs(heads[machine, :, :, tape]).argmax(axis=-1)
read, write = ((cells + n // 2) % n - n // 2).T  # the tape is a ring
for name, row in (("token", symbols), ("write", write), ("read", read)):
  print(f"{name:5}" + "".join(f"{x:>4}" for x in row))

# %%
given = [t for t, symbol in enumerate(symbols) if symbol.isdigit()]
found = [write[g] == read[a] for g, a in zip(given, asked[::-1], strict=True)]
print(f"{sum(found)} of {len(found)} digits are read where they were written")
if IS_FULL_RUN:
  assert all(found)

# %% [markdown]
# A number longer than any in training gets the same walk, only longer:

# %%
draw(*watch(digits=14))

# %%
folder.cleanup()

# %% [markdown]
# Next: [Learning from one example](4_one_example.ipynb).
