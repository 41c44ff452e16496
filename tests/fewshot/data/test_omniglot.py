"""Omniglot from archives, .npz and prepared folders."""

import os
import pathlib
import zipfile

import numpy as np
import pytest

from data_files import official
from fewshot.data import omniglot
from tests.data_files import writers

DRAWINGS = 6
NAMES = {
  "background": [f"A/character{i:02}" for i in (1, 2, 3)] + ["B/character01"],
  "evaluation": ["C/character01", "C/character02"],
}
SETTINGS = {"num_val": 1, "num_base_val": 1, "num_base_test": 2}


def drawings(part):
  """Ink 1 on paper 0, [characters drawings 105 105], in thick lines."""
  rng = np.random.default_rng(len(part) + len(NAMES[part]))
  coarse = rng.integers(0, 2, (len(NAMES[part]), DRAWINGS, 21, 21), np.uint8)
  return coarse.repeat(5, axis=2).repeat(5, axis=3)


def contents(part):
  return {
    f"images_{part}/{name}/{i:04}_{j:02}.png": writers.png(255 - 255 * drawing)
    for i, name in enumerate(NAMES[part])
    for j, drawing in enumerate(drawings(part)[i])
  }


def write_zips(folder):
  for part in NAMES:
    with zipfile.ZipFile(folder / f"images_{part}.zip", "w") as archive:
      archive.writestr(f"images_{part}/", b"")
      for name, data in reversed(contents(part).items()):
        archive.writestr(name, data)


def write_npz(folder, **changes):
  arrays = {}
  for part, names in NAMES.items():
    bits = drawings(part)
    small = 255 * bits[..., :84:3, :84:3]
    arrays[f"images_{part}_28"] = small
    packed = np.packbits(bits.reshape(*bits.shape[:2], -1), axis=-1)
    arrays[f"images_{part}_packed"] = packed
    arrays[f"images_{part}_names"] = np.array(names)
  arrays |= changes
  np.savez(
    folder / "omniglot.npz",
    **{name: array for name, array in arrays.items() if array is not None},
  )
  return arrays


def write_prepared(root):
  splits, first = {}, 0
  for part, split in (("background", "train"), ("evaluation", "test")):
    splits[split] = [
      {"image": np.repeat(255 - 255 * d[..., None], 3, axis=2), "label": label}
      for label, character in enumerate(drawings(part), start=first)
      for d in character
    ]
    first += len(NAMES[part])
  features = {"image": (105, 105, 3), "label": 1623}
  writers.write_prepared(root, "omniglot", features, splits)


def error_of(folder, **settings):
  return writers.error_of(omniglot.load, folder, **(SETTINGS | settings))


def assert_is_the_small_set(data, named=True):
  """All drawings, 21 x 21, once each and with the right class."""
  assert [len(s.data) for s in data.splits().values()] == [9, 3, 6, 6, 12]
  for part, splits in (
    ("background", (data.base_train, data.base_val, data.base_test, data.val)),
    ("evaluation", (data.test,)),
  ):
    found = sorted(
      (split.names[label], image.tobytes())
      for split in splits
      for image, label in zip(split.data, split.labels, strict=True)
    )
    names = NAMES[part]
    if not named:
      first = 0 if part == "background" else len(NAMES["background"])
      names = [f"character{first + i:04}" for i in range(len(names))]
    assert found == sorted(
      (name, (255 * drawing[::5, ::5]).tobytes())
      for name, character in zip(names, drawings(part), strict=True)
      for drawing in character
    )


@pytest.mark.parametrize("place", ["", "omniglot"])
def test_archives_load(tmp_path, place):
  (tmp_path / place).mkdir(exist_ok=True)
  write_zips(tmp_path / place)
  assert_is_the_small_set(omniglot.load(tmp_path, image_size=21, **SETTINGS))


def test_packed_arrays_load(tmp_path):
  write_npz(tmp_path)
  data = omniglot.load(tmp_path, image_size=21, **SETTINGS)
  assert_is_the_small_set(data)


def test_prepared_folders_load_also_from_where_tfds_keeps_them(
  tmp_path, monkeypatch
):
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
  write_prepared(tmp_path)
  for data_dir in (tmp_path, None):
    data = omniglot.load(data_dir, image_size=21, **SETTINGS)
    assert_is_the_small_set(data, named=False)


def test_small_images_are_taken_as_they_are(tmp_path):
  arrays = write_npz(tmp_path)
  data = omniglot.load(tmp_path, **SETTINGS)
  expected = arrays["images_evaluation_28"].reshape(-1, 28, 28, 1)
  np.testing.assert_array_equal(data.test.data, expected)
  assert data.test.labels.tolist() == [0] * DRAWINGS + [1] * DRAWINGS


def test_the_seed_chooses_characters_and_drawings(tmp_path):
  write_npz(tmp_path)
  found = {
    seed: omniglot.load(tmp_path, **SETTINGS, seed=seed) for seed in range(8)
  }
  assert len({data.val.names for data in found.values()}) > 1
  same = omniglot.load(tmp_path, **SETTINGS, seed=3)
  np.testing.assert_array_equal(same.base_val.data, found[3].base_val.data)


def test_turned_characters_are_classes_of_the_base_only(tmp_path):
  write_npz(tmp_path)
  plain = omniglot.load(tmp_path, **SETTINGS)
  turned = omniglot.load(tmp_path, **SETTINGS, rotations=True)
  assert turned.val.names == plain.val.names
  assert turned.test.names == plain.test.names
  names = plain.base_test.names
  assert turned.base_test.names == names + tuple(
    f"{name}@{angle}" for angle in (90, 180, 270) for name in names
  )
  rows = np.flatnonzero(turned.base_test.labels == 3 + 1)
  expected = plain.base_test.data[plain.base_test.labels == 1]
  np.testing.assert_array_equal(
    turned.base_test.data[rows], np.rot90(expected, 1, (1, 2))
  )
  assert (turned.base_test.data[rows] != expected).any()


@pytest.mark.parametrize(
  ("changes", "complaint"),
  [
    ({"images_background_28": None}, "has no images_background_28.npy"),
    (
      {"images_background_28": np.zeros((4, 6, 28, 27), np.uint8)},
      "images_background_28 as uint8 [characters, drawings, *[28, 28]] and as",
    ),
    ({"images_evaluation_28": np.zeros((2, 6, 28, 28))}, "got float64"),
    ({"images_evaluation_names": np.array(["a"])}, "as many names"),
    ({"images_evaluation_names": np.array([b"a", b"b"])}, "as many names"),
    ({"images_evaluation_names": np.array(["a", "a"])}, "are named 'a'"),
    (
      {"images_evaluation_names": np.array(["a", None])},
      "it holds Python objects",
    ),
    (
      {"images_evaluation_28": np.zeros((2, 0, 28, 28), np.uint8)},
      "class 'C/character01' has no images",
    ),
  ],
)
def test_wrong_arrays_are_named(tmp_path, changes, complaint):
  write_npz(tmp_path, **changes)
  message = error_of(tmp_path)
  assert str(tmp_path / "omniglot.npz") in message
  assert complaint in message


def test_wrong_drawings_are_named(tmp_path):
  write_zips(tmp_path)
  (tmp_path / "images_evaluation.zip").unlink()
  message = error_of(tmp_path)
  assert "images_evaluation.zip: no such file" in message
  assert official.OMNIGLOT_EVALUATION.url in message
  with zipfile.ZipFile(tmp_path / "images_evaluation.zip", "w") as archive:
    archive.writestr("images_evaluation/C/character01/1.png", b"no image")
  assert "images_evaluation/C/character01/1.png: not a" in error_of(tmp_path)
  write_zips(tmp_path)
  with zipfile.ZipFile(tmp_path / "images_evaluation.zip", "a") as archive:
    drawing = next(iter(contents("evaluation").values()))
    archive.writestr("images_evaluation/C/character01/more.png", drawing)
  assert "C/character01 has 7 drawings, most" in error_of(tmp_path)


@pytest.mark.parametrize(
  ("settings", "complaint"),
  [
    ({"num_val": 4}, "num_val 4 leaves no base class"),
    ({"num_base_val": 4}, "has 6 images, and 4 + 2 are to be held out"),
    ({"num_base_test": 0}, "num_base_test must be an integer of at least 1"),
  ],
)
def test_wrong_settings_are_named(tmp_path, settings, complaint):
  write_npz(tmp_path)
  assert complaint in error_of(tmp_path, **settings)


@pytest.mark.parametrize("file", ["omniglot.npz", "images_evaluation.zip"])
def test_damaged_files_load_right_or_not_at_all(tmp_path, file):
  (write_npz if file.endswith("npz") else write_zips)(tmp_path)
  whole = omniglot.load(tmp_path, **SETTINGS).test
  loaded, failures = writers.load_damaged(
    tmp_path / file, 15, lambda: omniglot.load(tmp_path, **SETTINGS).test
  )
  assert failures >= 15
  for test in loaded:
    assert test.names == whole.names
    np.testing.assert_array_equal(test.data, whole.data)


@writers.REAL
def test_the_real_characters_are_complete():
  data = omniglot.load(pathlib.Path(os.environ["NAM_DATA_DIR"]))
  sizes = [(len(s.names), len(s.data)) for s in data.splits().values()]
  base = [(864, 864 * n) for n in (14, 3, 3)]
  assert sizes == [*base, (100, 2_000), (659, 13_180)]
  assert 0 < data.test.data.mean() < 40
