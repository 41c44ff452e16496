"""Hand-computed metrics, shared episodes, intervals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fewshot import episodes, evaluate, heads
from fewshot.episodes import ByClass, Size


def test_metrics_of_a_small_episode():
  # Classes: base 0, 1; novel 2, 3. One row per query.
  novel = jnp.array(
    [
      [[0.0, 0.0, 2.0, 1.0], [3.0, 0.0, 2.0, 1.0]],  # of 2: right, base
      [[0.0, 0.0, 2.0, 1.0], [0.0, 0.0, 1.0, 2.0]],  # of 3: wrong, right
    ]
  )
  base = jnp.array([[2.0, 1.0, 0.0, 0.0], [1.0, 2.0, 0.0, 3.0]])
  found = jax.jit(evaluate.episode_metrics)(novel, base, jnp.array([0, 1]))
  expected = {
    "both": 3 / 6,
    "novel": 3 / 4,
    "base": 1.0,
    "joint_base": 0.5,
    "joint_novel": 0.5,
    "harmonic": 0.5,
    "novel_to_base": 0.25,
    "base_to_novel": 0.5,
  }
  assert found.keys() == expected.keys()
  for name, value in expected.items():
    np.testing.assert_allclose(found[name], value, err_msg=name)


def test_the_harmonic_mean_of_nothing_right_is_zero():
  wrong = jnp.array([[[1.0, 0.0]]])
  found = jax.jit(evaluate.episode_metrics)(
    wrong, jnp.array([[0.0, 1.0]]), jnp.zeros(1, int)
  )
  assert found["harmonic"] == 0


@pytest.fixture(scope="module")
def setting():
  """Features of 8 novel and 5 base classes around their centres."""
  rng = np.random.default_rng(0)
  centres = rng.normal(size=(13, 6))
  points = centres[:, None] + rng.normal(size=(13, 30, 6))
  novel, base = (
    part.reshape(-1, 6).astype(np.float32) for part in (points[5:], points[:5])
  )
  tables = [
    ByClass(
      np.arange(len(rows), dtype=np.int32).reshape(-1, 30),
      np.full(len(rows) // 30, 30, np.int32),
    )
    for rows in (novel, base)
  ]
  drawn = episodes.sample(0, *tables, Size(4, 5, 10, 20), 53)
  net = heads.EpisodeNetwork(heads.make_head("cosine"), 5)
  params = {
    "base": jnp.asarray(centres[:5], jnp.float32),
    "scale": jnp.ones(()),
  }
  return net, params, jnp.asarray(novel), jnp.asarray(base), drawn


def test_batches_of_episodes_equal_one_after_the_other(setting):
  net, params, novel, base, drawn = setting
  found = evaluate.evaluate(*setting, 3)

  @jax.jit
  def metrics(one):
    query = jnp.concatenate([novel[one.query.ravel()], base[one.base_query]])
    support = novel[one.support[:, :3]]
    mask = jnp.ones(support.shape[:2], bool)
    logits = net.apply(
      {"params": params}, support, mask, query, jnp.ones(5, bool)
    )
    return evaluate.episode_metrics(
      logits[:40].reshape(4, 10, 9), logits[40:], one.base_label
    )

  for e in (0, 19, 20, 52):
    expected = metrics(jax.tree.map(lambda x, e=e: x[e], drawn))
    for name, value in expected.items():
      np.testing.assert_allclose(found[name][e], value, atol=1e-6)


def test_more_supports_help_and_a_bias_favours_novel_classes(setting):
  one, five = (evaluate.evaluate(*setting, k) for k in (1, 5))
  assert five["novel"].mean() > one["novel"].mean() + 0.05
  biased = evaluate.evaluate(*setting, 1, 0.5)
  assert biased["novel_to_base"].mean() < one["novel_to_base"].mean()
  assert biased["base_to_novel"].mean() > one["base_to_novel"].mean()
  np.testing.assert_array_equal(biased["novel"], one["novel"])


def test_calibration_finds_the_best_of_its_biases():
  def measure(bias):
    return {"both": np.array([-((bias - 0.7) ** 2)])}

  assert abs(evaluate.calibrate(measure, 10.0) - 0.7) < 1e-9


def test_intervals_and_paired_differences():
  ours, theirs = {"both": np.array([1.0, 0.0, 1.0, 0.0])}, {"both": np.zeros(4)}
  found = evaluate.summary(ours)["both"]
  assert found == {"mean": 0.5, "ci95": pytest.approx(1.96 * 0.5 / 2)}
  shifted = {"both": ours["both"] - 0.25}
  assert evaluate.paired(ours, shifted)["both"] == {"mean": 0.25, "ci95": 0.0}
  assert evaluate.paired(ours, theirs)["both"]["ci95"] > 0


def test_too_many_shots_are_an_error(setting):
  with pytest.raises(ValueError, match="num_shot=6, but the episodes have 5"):
    evaluate.evaluate(*setting, 6)
