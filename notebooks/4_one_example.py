# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
# ---

# %% [markdown]
# # Learning from one example
#
# A classifier knows 64 characters of invented scripts. Then it sees *one*
# drawing of each of five new characters, and has to tell all 69 apart, without
# any further training. You will see that its weights are a memory, that a new
# class is one write, what the write and the erase probability do to new and to
# known classes, and what a network that learns these probabilities gains.
#
# Everything is drawn by the program itself: there is nothing to download.

# %%
import contextlib
import io
import sys
import tempfile

import jax.numpy as jnp
from flax import linen as nn
from IPython import display

import nam_jax
from nam_jax import training, viz

sys.path.extend([".", ".."])  # the checkout, from its root or from here
from configs.fewshot import glyphs
from fewshot import evaluate, heads, run, stage1, table, writes
from fewshot.classifier import FewShotClassifier

# %matplotlib inline

# %% tags=["parameters"]
STAGE1_STEPS = 600  # updates of the features
STAGE2_STEPS = 200  # updates of each head
EPISODES = 600  # to test on
IS_FULL_RUN = True  # a shorter one does not learn the features

# %% [markdown]
# ## The data, and features for it
#
# A class is a character of two to four strokes, and every drawing of it is by
# an unsteady hand.

# %%
config = glyphs.get_config("cosine,nam,nam_projection")
config.shots, config.curve_shots = (1,), ()
config.stage1.num_steps, config.stage2.num_steps = STAGE1_STEPS, STAGE2_STEPS
config.num_episodes = EPISODES
config = training.from_config_dict(config, run.FewShotConfig)

folder = tempfile.TemporaryDirectory()
experiment = run.make_experiment(config, folder.name, "")
base, novel = experiment.dataset.base_train, experiment.dataset.test

viz.images(
  {
    f"{kind} class {c + 1}": split.data[split.rows_by_class()[c][:8], ..., 0]
    for kind, split in (("known", base), ("new", novel))
    for c in range(3)
  }
)

# %% [markdown]
# Stage 1 trains a small convolutional network and a row of weights for each
# known class. The score of a class is the cosine of its row with the features
# of an image. The training engine's messages go to `log`.

# %%
log = io.StringIO()
with contextlib.redirect_stdout(log):
  trained = stage1.run(experiment, run.draw(experiment, "val"), train=True)
features = stage1.features(experiment, trained.best)
W = nam_jax.unit(features.base)
print(f"weights: {W.shape[0]} known classes, {W.shape[1]} features")

# %% [markdown]
# ## A new class is one write
#
# The weights are a memory with one row per class, and scoring an image is a
# read: $RD(W, x) = W x$. To learn a class from an image, append an empty row
# and write: the key is the image's features, the value says which row it is.

# %%
rows = novel.rows_by_class()[0]
support, query = nam_jax.unit(jnp.asarray(features.test[rows[:2]]))

empty = jnp.concatenate([W, jnp.zeros((1, W.shape[1]))])
new_class = jnp.eye(len(empty))[-1]
added = nam_jax.write(empty, support, new_class, p_w=1.0, p_e=0.0)
erased = nam_jax.write(empty, support, new_class, p_w=1.0, p_e=1.0)

for name, image in (("the same image", support), ("another one", query)):
  print(f"{name:16} best known class   new class")
  for title, memory in {
    "before": empty,
    "p_w = 1, p_e = 0": added,
    "p_w = 1, p_e = 1": erased,
  }.items():
    scores = nam_jax.read(memory, image)
    print(f"{title:16} {scores[:-1].max():16.2f} {scores[-1]:11.2f}")

# %% [markdown]
# By Theorem 1 a write with $p_w = p_e = 1$ leaves no doubt about this very
# image: the new class scores 1 and every known class 0. Without erasing, the
# known classes keep their scores. For another drawing of the same character the
# erased part still helps: what known classes have in common with it is smaller.

# %%
scores = nam_jax.read(erased, support)
assert jnp.allclose(scores, new_class, atol=1e-5)
assert jnp.allclose(nam_jax.read(added, support)[:-1], W @ support, atol=1e-5)

# %% [markdown]
# ## What the two probabilities do
#
# Now we learn five new classes at a time, in many such episodes. The head below
# writes the five supports one after the other, all with the same $p_w$ and
# $p_e$. The engine of the few-shot experiments asks it about drawings of the
# new classes and of the known ones; all 69 classes are possible answers.


# %%
class FixedGates(nn.Module):
  """Writes all supports with two probabilities, which are its parameters."""

  @nn.compact
  def __call__(self, base, base_mask, support, mask):
    gates = [
      jnp.full(mask.shape, self.param(name, nn.initializers.ones, ()))
      for name in ("p_w", "p_e")
    ]
    base, support = nam_jax.unit(base), nam_jax.unit(support)
    rows = writes.write_scan(base, support, *gates, mask)
    return heads.Weights(rows, jnp.ones(len(rows), bool))


network = heads.EpisodeNetwork(FixedGates(), num_base=len(W))
episodes = run.draw(experiment, "test")


def ask(p_w, p_e):
  """Mean shares of right answers, and of new classes taken for known ones."""
  gates = {"p_w": jnp.float32(p_w), "p_e": jnp.float32(p_e)}
  params = {"base": features.base, "scale": features.scale, "head": gates}
  found = evaluate.evaluate(
    network, params, features.test, features.base_test, episodes, num_shot=1
  )
  return evaluate.means(found)


p_ws, p_es = (0.2, 0.4, 0.6, 0.8, 1.0), (0.0, 0.5, 1.0)
found = {(p_w, p_e): ask(p_w, p_e) for p_w in p_ws for p_e in p_es}

lines = {
  "new, right": "joint_novel",
  "known, right": "joint_base",
  "all, right": "both",
  "new, taken for known": "novel_to_base",
  "known, taken for new": "base_to_novel",
}
viz.curves(
  {
    f"$p_e$ = {p_e}": {
      title: {p_w: 100 * found[p_w, p_e][name] for p_w in p_ws}
      for title, name in lines.items()
    }
    for p_e in p_es
  },
  xlabel="write probability $p_w$",
  ylabel="queries (%)",
)

# %% [markdown]
# Reading the picture: $p_w$ says how loudly a new class speaks. A small one
# leaves its queries to the known classes; with a larger one, more of them are
# answered right, and a few queries of known classes are lost. $p_e$ makes the
# known classes quieter just where a new one has been written, so that the same
# $p_w$ goes further. Too much of it costs known classes: see the last panel.

# %%
if IS_FULL_RUN:
  for p_e in p_es:
    low, high = found[0.2, p_e], found[1.0, p_e]
    assert low["joint_novel"] < high["joint_novel"]
    assert low["joint_base"] > high["joint_base"]
  for p_w in p_ws:
    kept, erased = found[p_w, 0.0], found[p_w, 1.0]
    assert kept["novel_to_base"] > erased["novel_to_base"]
    assert kept["joint_base"] > erased["joint_base"]
best = max(found, key=lambda gates: found[gates]["both"])
print(f"most queries right: {found[best]['both']:.1%} at (p_w, p_e) = {best}")

# %% [markdown]
# ## Probabilities that are learned
#
# The paper's head `nam` has a small network that looks at a support and chooses
# its $p_w$ and $p_e$. It is trained on episodes in which known classes pose as
# new ones. `nam_projection` erases what lies in the span of all supports at
# once; `cosine` never erases. All have rows of length one.

# %%
with contextlib.redirect_stdout(log):
  results = run.run(experiment)
print(table.show(results))

# %%
display.Image(experiment.workdir / "answers_1shot.png", width=800)

# %% [markdown]
# ## Use it
#
# A trained head is a classifier with three verbs. Teach it a character from one
# drawing, ask about drawings it has not seen, and let it forget again.

# %%
file = experiment.workdir / "nam_projection-1shot" / "classifier.npz"
classifier = FewShotClassifier.load(file)
images = novel.data[novel.rows_by_class()[1]]

before = classifier.predict(images[1:])
classifier.add("new", images[:1])
after = classifier.predict(images[1:])
classifier.remove("new")
print(f"taken for {len(set(before))} different known classes before")
print(f"recognised after one drawing: {after.count('new')} of {len(after)}")
assert "new" not in before
assert classifier.predict(images[1:]) == before
folder.cleanup()

# %% [markdown]
# Next: [The Long Range Arena in ten lines](5_lra_in_ten_lines.ipynb).
