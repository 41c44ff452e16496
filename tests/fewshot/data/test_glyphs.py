"""Drawn glyphs: sizes, seeds, and that they can be told apart."""

import time

import numpy as np
import pytest

from data_files.errors import DataError
from fewshot.data import glyphs

SMALL = {
  "num_base": 6,
  "num_val": 2,
  "num_novel": 3,
  "num_base_train": 8,
  "num_base_val": 2,
  "num_base_test": 3,
  "num_novel_images": 5,
}


def flat(split):
  return split.data.reshape(len(split.data), -1).astype(float)


def accuracy(data):
  """Accuracy of the nearest mean training image."""
  train, test = data.base_train, data.base_test
  means = np.stack(
    [flat(train)[rows].mean(0) for rows in train.rows_by_class()]
  )
  distances = ((flat(test)[:, None] - means) ** 2).sum(-1)
  return (distances.argmin(1) == test.labels).mean()


def test_the_default_has_the_sizes_of_the_protocol_and_is_drawn_quickly():
  start = time.perf_counter()
  data = glyphs.load()
  seconds = time.perf_counter() - start
  assert seconds < 6
  sizes = {
    name: (len(split.names), *set(split.counts()))
    for name, split in data.splits().items()
  }
  assert sizes == {
    "base_train": (64, 40),
    "base_val": (64, 10),
    "base_test": (64, 20),
    "val": (16, 40),
    "test": (20, 40),
  }
  assert data.base_train.data.shape[1:] == (20, 20, 1)
  assert 0.3 < accuracy(data) < 0.95


def test_settings_give_the_sizes():
  data = glyphs.load(**SMALL, image_size=12)
  shapes = [split.data.shape for split in data.splits().values()]
  assert shapes == [(n, 12, 12, 1) for n in (48, 12, 18, 10, 15)]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
  first, again, other = (glyphs.load(**SMALL, seed=seed) for seed in (3, 3, 4))
  for name, split in first.splits().items():
    assert split.data.tobytes() == again.splits()[name].data.tobytes()
    assert split.data.tobytes() != other.splits()[name].data.tobytes()


def test_a_class_does_not_depend_on_the_number_of_others():
  few = glyphs.load(**SMALL)
  more = glyphs.load(**(SMALL | {"num_base": 7}))
  np.testing.assert_array_equal(
    few.base_train.data, more.base_train.data[: len(few.base_train.data)]
  )
  assert more.base_train.names[:6] == few.base_train.names


def test_no_two_images_are_the_same():
  data = glyphs.load(**SMALL)
  everything = np.concatenate([flat(s) for s in data.splits().values()])
  assert len(np.unique(everything, axis=0)) == len(everything)


def test_a_steady_hand_is_easier_to_read():
  found = [
    accuracy(glyphs.load(num_base=20, difficulty=h)) for h in (0, 0.05, 0.2)
  ]
  assert found[0] == 1
  assert found[0] > found[1] + 0.05 > found[2] + 0.1


@pytest.mark.parametrize("side", [8, 28, 84])
def test_ink_is_there_at_every_size(side):
  data = glyphs.load(**SMALL, image_size=side).base_train.data
  bright = (data > 128).mean((1, 2, 3))
  assert 0.02 < bright.min() < bright.max() < 0.7


@pytest.mark.parametrize(
  ("settings", "complaint"),
  [
    ({"num_val": 0}, "num_val must be an integer of at least 1, got 0"),
    ({"num_base": 2.5}, "num_base must be an integer of at least 1, got 2.5"),
    ({"image_size": 4}, "image_size must be an integer of at least 8"),
    ({"difficulty": -0.1}, "difficulty in 0..1"),
    ({"difficulty": float("nan")}, "difficulty in 0..1"),
    ({"seed": -1}, "seed must be an integer of at least 0"),
  ],
)
def test_wrong_settings_are_named(settings, complaint):
  with pytest.raises(DataError) as caught:
    glyphs.load(**settings)
  assert complaint in str(caught.value)
