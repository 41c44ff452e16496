"""Classes added from images, forgotten again, saved and loaded."""

import functools

import jax
import numpy as np
import pytest

from data_files.errors import DataError
from fewshot import backbones, heads, network
from fewshot.classifier import FewShotClassifier
from fewshot.data import glyphs

HEADS = {
  "cosine": {"kind": "cosine"},
  "nam": {"kind": "nam", "accumulate": "sum"},
  "scan": {"kind": "nam", "accumulate": "scan"},
}


@pytest.fixture(scope="module")
def data():
  return glyphs.load(num_base=4, num_val=1, num_novel=3, num_novel_images=8)


@functools.cache
def weights(head):
  """Random variables of the base network, and parameters of a head."""
  key, images = jax.random.key(0), np.zeros((1, 20, 20, 1), np.uint8)
  base = network.BaseNetwork(backbones.make_backbone("conv", widths=(4, 4)), 4)
  variables = jax.jit(base.init)(key, images)
  d = variables["params"]["base"].shape[1]
  net = heads.EpisodeNetwork(heads.make_head(**HEADS[head]), 4)
  support, mask = np.ones((1, 1, d), np.float32), np.ones((1, 1), bool)
  init = jax.jit(net.init)
  return variables, init(key, support, mask, support[0], np.ones(4, bool))


def make(data, head):
  variables, episode_variables = weights(head)
  spec = {
    "backbone": {"name": "conv", "widths": [4, 4]},
    "head": HEADS[head],
    "input_shape": [20, 20, 1],
    "names": list(data.base_train.names),
    "novel_bias": 0.0,
  }
  variables = network.with_input_stats(variables, data.base_train.data)
  return FewShotClassifier(spec, variables, episode_variables["params"])


def images(data, number):
  return data.test.data[data.test.labels == number]


@pytest.mark.parametrize("head", HEADS)
def test_a_class_is_learned_from_its_images_and_forgotten(data, head):
  classifier = make(data, head)
  before = classifier.probabilities(images(data, 0))
  assert before.shape == (8, 4)
  classifier.add_class("first", images(data, 0)[:3])
  classifier.add_class("second", images(data, 1)[:1])
  assert classifier.names == (*data.base_train.names, "first", "second")
  assert classifier.predict(images(data, 0)[:3]) == ["first"] * 3
  assert classifier.predict(images(data, 1)[:1]) == ["second"]
  np.testing.assert_allclose(
    classifier.probabilities(images(data, 2)).sum(axis=1), 1, rtol=1e-5
  )
  classifier.remove_class("first")
  classifier.remove_class("second")
  np.testing.assert_array_equal(
    classifier.probabilities(images(data, 0)), before
  )


def test_a_saved_classifier_answers_the_same(data, tmp_path):
  classifier = make(data, "nam")
  classifier.add_class("first", images(data, 0)[:3])
  classifier.save(tmp_path / "c.npz")
  loaded = FewShotClassifier.load(tmp_path / "c.npz")
  assert loaded.names == classifier.names
  np.testing.assert_array_equal(
    loaded.probabilities(images(data, 1)),
    classifier.probabilities(images(data, 1)),
  )
  loaded.remove_class("first")
  assert [p.name for p in tmp_path.iterdir()] == ["c.npz"]


@pytest.mark.parametrize(
  ("wrong", "message"),
  [
    (np.zeros((2, 20, 20, 1)), r"expected uint8 \[n, 20, 20, 1\], got float64"),
    (np.zeros((20, 20, 1), np.uint8), r"got uint8 \[20, 20, 1\]"),
    (np.zeros((0, 20, 20, 1), np.uint8), "at least one image"),
  ],
)
def test_wrong_images_are_named(data, wrong, message):
  classifier = make(data, "cosine")
  with pytest.raises(ValueError, match=message):
    classifier.add_class("first", wrong)
  assert classifier.names == data.base_train.names


def test_names_are_checked(data):
  classifier = make(data, "cosine")
  classifier.add_class("first", images(data, 0))
  with pytest.raises(ValueError, match="there is already a class 'first'"):
    classifier.add_class("first", images(data, 1))
  with pytest.raises(ValueError, match=r"no class .third. was added; .* first"):
    classifier.remove_class("third")


def test_anything_else_is_not_a_classifier(data, tmp_path):
  path = tmp_path / "c.npz"
  make(data, "cosine").save(path)
  whole = path.read_bytes()
  np.savez(tmp_path / "other.npz", x=np.zeros(3))
  (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
  (tmp_path / "pickle.npz").write_bytes(b"\x80\x04N.")
  np.savez(tmp_path / "object.npz", spec=np.array([None], object))
  for name in ("other", "cut", "pickle", "object", "missing"):
    with pytest.raises(DataError, match=f"{name}.npz is not a saved"):
      FewShotClassifier.load(tmp_path / f"{name}.npz")
