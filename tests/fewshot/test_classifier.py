"""Classes added from images, forgotten again, saved and loaded."""

import functools
import json
import zipfile

import jax
import numpy as np
import pytest
from PIL import Image

from data_files.errors import DataError
from fewshot import backbones, heads, network
from fewshot.classifier import FewShotClassifier
from fewshot.data import glyphs
from tests.data_files import writers

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
  classifier.add("first", images(data, 0)[:3])
  classifier.add("second", images(data, 1)[:1])
  assert classifier.names == (*data.base_train.names, "first", "second")
  assert classifier.predict(images(data, 0)[:3]) == ["first"] * 3
  assert classifier.predict(images(data, 1)[:1]) == ["second"]
  np.testing.assert_allclose(
    classifier.probabilities(images(data, 2)).sum(axis=1), 1, rtol=1e-5
  )
  classifier.remove("first")
  classifier.remove("second")
  np.testing.assert_array_equal(
    classifier.probabilities(images(data, 0)), before
  )


def test_a_saved_classifier_answers_the_same(data, tmp_path):
  classifier = make(data, "nam")
  classifier.add("first", images(data, 0)[:3])
  classifier.save(tmp_path / "c.npz")
  loaded = FewShotClassifier.load(tmp_path / "c.npz")
  assert loaded.names == classifier.names
  np.testing.assert_array_equal(
    loaded.probabilities(images(data, 1)),
    classifier.probabilities(images(data, 1)),
  )
  loaded.remove("first")
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
    classifier.add("first", wrong)
  assert classifier.names == data.base_train.names


@pytest.mark.parametrize(
  ("name", "message"),
  [
    ("", "a name of 1 to 200 printable characters, got ''"),
    ("  ", "a name of 1 to 200"),
    ("a\nb", r"got 'a\\nb'"),
    ("a" * 201, "a name of 1 to 200"),
    (3, "needs a text as name, got 3"),
    ("glyph0000", "'glyph0000' is a base class"),
  ],
)
def test_names_are_checked(data, name, message):
  classifier = make(data, "cosine")
  with pytest.raises(ValueError, match=message):
    classifier.add(name, images(data, 0))
  assert classifier.names == data.base_train.names


def test_other_names_than_those_there_are_are_refused(data):
  classifier = make(data, "cosine")
  classifier.add("first", images(data, 0))
  for change in (classifier.remove, lambda name: classifier.rename(name, "b")):
    with pytest.raises(ValueError, match=r"no class .third.; .* added: first"):
      change("third")
  for new in ("first", "glyph0001"):
    with pytest.raises(ValueError, match="there is already a class"):
      classifier.rename("first", new)


@pytest.mark.parametrize("head", ["cosine", "nam"])
def test_more_images_of_a_class_are_those_of_one_call(data, head):
  together, in_parts = make(data, head), make(data, head)
  together.add("first", images(data, 0))
  in_parts.add("first", images(data, 0)[:3])
  in_parts.predict(images(data, 1))
  in_parts.add("first", images(data, 0)[3:])
  np.testing.assert_allclose(
    *(c.probabilities(images(data, 1)) for c in (together, in_parts)), rtol=1e-5
  )


def test_a_base_class_is_removed_and_its_name_free_again(data, tmp_path):
  classifier = make(data, "nam")
  classifier.rename("glyph0002", "two")
  classifier.remove("glyph0001")
  assert classifier.names == ("glyph0000", "two", "glyph0003")
  classifier.add("glyph0001", images(data, 0)[:3])
  classifier.save(tmp_path / "c.npz")
  loaded = FewShotClassifier.load(tmp_path / "c.npz")
  assert loaded.names == ("glyph0000", "two", "glyph0003", "glyph0001")
  assert loaded.predict(images(data, 0)[:3]) == ["glyph0001"] * 3


def test_the_most_likely_classes_come_first(data):
  classifier = make(data, "cosine")
  shares = classifier.probabilities(images(data, 0)[:2])
  found = classifier.predict(images(data, 0)[:2], top=3)
  for row, pairs in zip(shares, found, strict=True):
    assert [p for _, p in pairs] == sorted(row.tolist(), reverse=True)[:3]
    assert row[classifier.names.index(pairs[0][0])] == pairs[0][1]
  for wrong in (0, 1.5, True):
    with pytest.raises(ValueError, match="top must be a positive integer"):
      classifier.predict(images(data, 0), top=wrong)


def test_files_folders_and_pil_images_are_read_as_in_training(data, tmp_path):
  classifier = make(data, "cosine")
  pixels = images(data, 0)[:2]
  paths = [
    writers.write(tmp_path / "new" / f"{n}.png", writers.png(image[..., 0]))
    for n, image in enumerate(pixels)
  ]
  expected = classifier.probabilities(pixels)
  as_pil = [Image.fromarray(image[..., 0]) for image in pixels]
  for given in (paths, [str(p) for p in paths], tmp_path / "new", as_pil):
    np.testing.assert_array_equal(classifier.probabilities(given), expected)
  bad = writers.write(tmp_path / "new" / "9.png", b"no image")
  with pytest.raises(DataError, match=f"{bad}: not a readable image"):
    classifier.add("new", tmp_path / "new")
  with pytest.raises(DataError, match="no such file"):
    classifier.predict(tmp_path / "absent.png")
  (tmp_path / "empty").mkdir()
  with pytest.raises(DataError, match="no image in this folder"):
    classifier.predict(tmp_path / "empty")
  with pytest.raises(DataError, match=r"expected a file, a folder, .* got int"):
    classifier.predict(3)


def test_anything_else_is_not_a_classifier(data, tmp_path):
  path = tmp_path / "c.npz"
  make(data, "cosine").save(path)
  whole = path.read_bytes()
  np.savez(tmp_path / "other.npz", x=np.zeros(3))
  (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
  (tmp_path / "pickle.npz").write_bytes(b"\x80\x04N.")
  np.savez(tmp_path / "object.npz", spec=np.array([None], object))
  for name in ("other", "cut", "pickle", "object", "missing"):
    with pytest.raises(DataError) as caught:
      FewShotClassifier.load(tmp_path / f"{name}.npz")
    start = f"not a saved classifier: {tmp_path / f'{name}.npz'}: "
    assert str(caught.value).startswith(start)


def test_an_image_gets_no_advice_about_pickles(tmp_path):
  path = writers.write(tmp_path / "c.npz", b"\x89PNG\r\n\x1a\n")
  message = writers.error_of(FewShotClassifier.load, path)
  assert message.endswith("the archive is damaged: File is not a zip file")


@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"format": "other"}, "its format is different"),
    ({"names": None}, ""),
    ({"names": ["a", "a", "b", "c"]}, "its names are not different texts"),
    ({"names": [1, 2, 3, 4]}, "its names are not different texts"),
    ({"input_shape": [10**6, 10**6, 1]}, ""),
    ({"input_shape": [20, 20]}, ""),
    ({"backbone": {"name": "conv", "widths": [4, 10**12]}}, ""),
    ({"head": {"kind": "nam", "hidden": 10**12}}, ""),
    (
      {"backbone": {"name": "tests.fewshot.test_backbones:Means"}},
      "it imports 'tests.fewshot.test_backbones:Means'; if you trust it",
    ),
    ({"novel_bias": None}, "its novel_bias is not a number"),
    ({"novel_bias": float("nan")}, "its novel_bias is not a number"),
    ({"mirror": 1}, "its mirror is neither true nor false"),
    ({"added": ["other", "more"]}, "it has 2 names for 1 classes"),
    ({"shown": [True]}, ""),
    ({"preprocess": {"side": 20, "mode": "CMYK"}}, "expected the mode RGB"),
  ],
)
def test_a_spec_that_does_not_fit_is_refused(data, tmp_path, change, message):
  path = tmp_path / "c.npz"
  classifier = make(data, "nam")
  classifier.add("first", images(data, 0)[:1])
  classifier.save(path)
  with np.load(path) as file:
    arrays = dict(file)
  spec = json.loads(str(arrays["spec"])) | change
  np.savez(path, **arrays | {"spec": json.dumps(spec)})
  error = writers.error_of(FewShotClassifier.load, path)
  start = f"not a saved classifier: {path}: "
  assert error.startswith(start + message)
  assert len(error) <= len(start) + 210
  assert "\n" not in error


def test_an_array_that_numpy_cannot_read_is_refused(data, tmp_path):
  path = tmp_path / "c.npz"
  make(data, "cosine").save(path)
  whole = path.read_bytes()
  with zipfile.ZipFile(path, "a") as archive:
    archive.writestr("added/0.npy", b"\x93NUMPY\x01\x00\x04\x00{'(\n")
  message = writers.error_of(FewShotClassifier.load, path)
  assert "added/0.npy: expected an array of numbers or text" in message
  # An archive that needs a newer program than zipfile.
  at = whole.rfind(b"PK\1\2")
  path.write_bytes(whole[: at + 6] + b"\xff" + whole[at + 7 :])
  assert "zip file version" in writers.error_of(FewShotClassifier.load, path)


def test_a_missing_folder_is_one_line(data, tmp_path):
  path = tmp_path / "nowhere" / "c.npz"
  with pytest.raises(DataError, match=r"cannot save .*nowhere/c\.npz: No such"):
    make(data, "cosine").save(path)
  message = writers.error_of(FewShotClassifier.load, path)
  assert message == f"not a saved classifier: {path}: no such file"


def test_a_file_of_the_first_format_is_read(data, tmp_path):
  """Its added classes have an array each, and there is no preprocessing."""
  classifier = make(data, "nam")
  classifier.add("first", images(data, 0)[:2])
  path = tmp_path / "c.npz"
  classifier.save(path)
  with np.load(path) as file:
    arrays = dict(file)
  del arrays["added/counts"]
  arrays["added/0"] = arrays.pop("added/features")
  spec = json.loads(str(arrays["spec"]))
  del spec["shown"]
  spec["format"] = "nam-jax few-shot classifier 1"
  np.savez(path, **arrays | {"spec": json.dumps(spec)})
  loaded = FewShotClassifier.load(path)
  assert loaded.names[-1] == "first"
  np.testing.assert_array_equal(
    loaded.probabilities(images(data, 1)),
    classifier.probabilities(images(data, 1)),
  )
