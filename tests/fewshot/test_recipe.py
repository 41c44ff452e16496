"""Better features: each way by hand, and all together in a run."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fewshot import recipe
from fewshot.config import RecipeConfig
from nam_jax import training
from tests.fewshot import test_run


def test_half_of_the_images_are_turned(key):
  images = np.arange(200 * 9, dtype=np.uint8).reshape(200, 3, 3, 1)
  turned, turns = jax.jit(recipe.turn)(key, images)
  for image, found, quarters in zip(images, turned, turns, strict=True):
    np.testing.assert_array_equal(found, np.rot90(image, quarters))
  assert 70 < (turns == 0).sum() < 130
  assert set(turns.tolist()) == {0, 1, 2, 3}


def test_labels_are_smoothed_and_mixed(key):
  targets = recipe.smooth(jnp.array([2, 0]), 4, 0.2)
  np.testing.assert_allclose(targets[0], [0.05, 0.05, 0.85, 0.05], rtol=1e-6)
  rows = np.eye(4, dtype=np.uint8)
  labels = recipe.smooth(jnp.arange(4), 4, 0.0)
  mixed, soft = recipe.mix(key, 0.5, jnp.asarray(rows), labels)
  np.testing.assert_allclose(mixed, soft, rtol=1e-6)
  np.testing.assert_allclose(soft.sum(1), 1, rtol=1e-6)
  assert ((soft > 0).sum(1) == 2).any()


def test_the_loss_with_hard_targets_is_the_usual_one():
  logits = jnp.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])
  hard = recipe.smooth(jnp.array([1, 2]), 3, 0.0)
  total, weight = recipe.cross_entropy(logits, hard)
  expected = -jax.nn.log_softmax(logits)[jnp.arange(2), jnp.array([1, 2])]
  np.testing.assert_allclose(total, expected.sum(), rtol=1e-6)
  assert weight == 2


def test_the_average_follows_slowly_and_forgets_the_start():
  start = {"params": {"w": jnp.zeros(2)}, "batch_stats": {}}
  average = recipe.start_average(start)
  first = recipe.update_average(average, {"w": jnp.ones(2)}, {}, 0.99)
  np.testing.assert_allclose(first["params"]["w"], 0.9, rtol=1e-6)
  for _ in range(200):
    first = recipe.update_average(first, {"w": 3 * jnp.ones(2)}, {}, 0.9)
  np.testing.assert_allclose(first["params"]["w"], 3, rtol=1e-5)


@pytest.mark.parametrize(
  ("fields", "message"),
  [
    ({"ema": 1.0}, r"recipe.ema=1.0 must lie in \[0, 1\)"),
    ({"mixup": -1.0}, "recipe.mixup=-1.0 must not be negative"),
  ],
)
def test_wrong_settings_are_named(fields, message):
  with pytest.raises(training.UserError, match=message):
    RecipeConfig(**fields)


@pytest.mark.filterwarnings("ignore:the load_module")
def test_a_run_with_everything_is_tested_again(tmp_path):
  arguments = (
    "--config.recipe.label_smoothing=0.1",
    "--config.recipe.mixup=0.2",
    "--config.recipe.rotation=0.5",
    "--config.recipe.ema=0.9",
    "--config.shots=(1,)",
    "--config.curve_shots=()",
  )
  workdir = tmp_path / "run"
  results = test_run.run(workdir, *arguments, heads="cosine")
  rows = training.read_metrics(workdir / "stage1")
  assert "turn_accuracy" in rows[0]
  again = test_run.run(workdir, *arguments, "--test_only", heads="cosine")
  assert again == results
  with np.load(workdir / "features.npz") as features:
    with np.load(workdir / "classifier.npz") as classifier:
      saved = classifier["base/params/base"]
    np.testing.assert_array_equal(features["base"], saved)
