"""Telling the unknown from the known: metrics by hand, and the classifier."""

import jax.numpy as jnp
import numpy as np
import pytest

from fewshot import unknown
from fewshot.classifier import FewShotClassifier
from tests.fewshot.test_embeddings import vectors


def test_the_area_counts_pairs():
  known, strange = jnp.array([0.9, 0.5, 0.5]), jnp.array([0.5, 0.1, 0.95])
  everything = jnp.ones(3, bool)
  # Of nine pairs, 1 + 3 known ones are higher and two equal.
  found = unknown.auroc(known, strange, everything)
  np.testing.assert_allclose(found, 5 / 9, rtol=1e-6)
  some = jnp.array([True, True, False])
  found = unknown.auroc(known, strange, some)
  np.testing.assert_allclose(found, 5 / 6, rtol=1e-6)
  assert jnp.isnan(unknown.auroc(known, strange, ~everything))


def test_accuracy_at_a_recall_of_95_percent():
  known = jnp.arange(20.0)  # one of them may be lost
  is_right = jnp.arange(20) % 2 == 0  # ten are right, the lost one is
  strange = jnp.array([-1.0, 0.5, 1.0, 7.0])
  assert unknown.threshold_at(known, 0.95) == 1
  found = unknown.accuracy95(known, is_right, strange, jnp.ones(4, bool))
  np.testing.assert_allclose(found, (9 / 20 + 2 / 4) / 2, rtol=1e-6)
  assert unknown.threshold_at(known, 1.0) == 0


def test_metrics_of_an_episode():
  novel = jnp.array([[[0.0, 5.0, 1.0]], [[9.0, 1.0, 4.0]]])  # base 0; 1, 2
  base = jnp.array([[6.0, 0.0, 0.0]])
  strange = jnp.array([[7.0, 3.0, 3.0], [0.0, 4.5, 2.0]])
  found = unknown.episode_metrics(
    novel, base, jnp.array([0]), strange, jnp.ones(2, bool)
  )
  expected = {
    "auroc": 3 / 4,  # 5 and 4 against 3 and 4.5
    "accuracy95": (1 + 1 / 2) / 2,  # both right at 4; 3 is refused
    "joint_auroc": 4 / 6,  # 5, 9, 6 against 7 and 4.5
    "joint_accuracy95": (2 / 3 + 1 / 2) / 2,
    "threshold": 5.0,
  }
  for name, value in expected.items():
    np.testing.assert_allclose(found[name], value, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("erase", [0.0, 0.5])
def test_what_is_none_of_the_classes_is_refused(erase, tmp_path):
  classifier = FewShotClassifier.from_embeddings(
    {"a": vectors(8), "b": vectors(9)}, erase=erase
  )
  for number in range(5):
    classifier.add(str(number), vectors(number, 4, noise=0.5))
  strange = vectors(50, 5)
  assert None not in classifier.predict(strange)
  before = classifier.probabilities(strange)
  found = classifier.calibrate()
  np.testing.assert_allclose(classifier.probabilities(strange), before, 1e-5)
  assert found.auroc > 0.95
  assert found.recall >= 0.95
  assert classifier.predict(strange) == [None] * 5
  assert classifier.predict(strange, top=2) == [[]] * 5
  assert classifier.predict(vectors(3, 6, noise=0.3)) == ["3"] * 6
  classifier.save(tmp_path / "c.npz")
  loaded = FewShotClassifier.load(tmp_path / "c.npz")
  assert loaded.predict(strange) == [None] * 5
  loaded.threshold = None
  assert None not in loaded.predict(strange)


def test_given_unknown_inputs_are_scored():
  classifier = FewShotClassifier.from_embeddings(
    {str(n): vectors(n, 4) for n in range(3)}
  )
  near = vectors(0, 5, noise=0.15)  # unknown only by name
  assert classifier.calibrate(near).refused < 0.5
  assert classifier.calibrate(vectors(70, 5)).refused == 1
  with pytest.raises(ValueError, match=r"recall must lie in \(0, 1\], got 2"):
    classifier.calibrate(recall=2)


def test_calibrating_needs_two_examples():
  classifier = FewShotClassifier.from_embeddings({"a": vectors(0, 1)})
  with pytest.raises(ValueError, match="a class with two or more examples"):
    classifier.calibrate()
