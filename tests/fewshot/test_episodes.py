"""What an episode consists of."""

import numpy as np
import pytest

from fewshot import episodes
from fewshot.data.dataset import DataError, Split
from fewshot.episodes import Size


def make_split(counts, prefix="class"):
  labels = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
  labels = np.random.default_rng(0).permutation(labels)
  names = tuple(f"{prefix}{i}" for i in range(len(counts)))
  return Split(np.zeros((len(labels), 2), np.float32), labels, names)


NOVEL = make_split([9, 12, 9, 30, 10, 11])
BASE = make_split([5, 3, 8, 6], "base")
SIZE = Size(num_way=4, num_shot=2, num_query=7, num_base_query=6)


def draw(number=60, seed=0, size=SIZE):
  tables = episodes.by_class(NOVEL), episodes.by_class(BASE)
  return episodes.sample(seed, *tables, size, number)


def test_supports_and_queries_are_different_rows_of_the_right_classes():
  drawn = draw()
  assert drawn.support.shape == (60, 4, 2)
  assert drawn.query.shape == (60, 4, 7)
  rows = np.concatenate([drawn.support, drawn.query], axis=-1)
  for episode, classes in zip(rows, drawn.classes, strict=True):
    assert len(set(classes)) == 4
    assert len(set(episode.ravel())) == episode.size
    assert (NOVEL.labels[episode] == classes[:, None]).all()


def test_base_queries_have_their_labels_and_are_different_rows():
  drawn = draw()
  assert drawn.base_query.shape == drawn.base_label.shape == (60, 6)
  assert (BASE.labels[drawn.base_query] == drawn.base_label).all()
  for rows, labels in zip(drawn.base_query, drawn.base_label, strict=True):
    if np.bincount(labels).max() <= 3:
      assert len(set(rows)) == len(rows)
  assert set(drawn.base_label.ravel()) == {0, 1, 2, 3}


def test_every_row_of_a_class_is_drawn():
  drawn = draw(500)
  rows = np.concatenate([drawn.support, drawn.query], axis=-1)
  assert set(rows.ravel()) == set(range(len(NOVEL.labels)))
  assert set(drawn.base_query.ravel()) == set(range(len(BASE.labels)))


def test_a_seed_gives_the_same_episodes_and_more_begin_with_them():
  few, many, other = draw(5), draw(700), draw(5, seed=1)
  for a, b, c in zip(few, many, other, strict=True):
    np.testing.assert_array_equal(a, b[:5])
    assert (a != c).any()


def test_training_hides_the_classes_that_play_novel_ones():
  table = episodes.by_class(NOVEL)
  size = SIZE._replace(num_base_query=10)
  drawn = episodes.sample_training(0, 3, table, size, 50)
  for classes, labels in zip(drawn.classes, drawn.base_label, strict=True):
    assert not set(classes) & set(labels)
  assert set(drawn.base_label.ravel()) == set(range(6))
  again = episodes.sample_training(0, 3, table, size, 50)
  other = episodes.sample_training(0, 4, table, size, 50)
  np.testing.assert_array_equal(drawn.support, again.support)
  assert (drawn.support != other.support).any()


@pytest.mark.parametrize(
  ("size", "message"),
  [
    (Size(num_way=7), "test has 6 classes; episodes need 7"),
    (
      Size(num_shot=3, num_query=8),
      "class 'class0' has 9 images; an episode of 3 shots and 8 queries"
      " needs 11",
    ),
  ],
)
def test_a_split_that_is_too_small_is_named(size, message):
  with pytest.raises(DataError, match=message):
    episodes.check(NOVEL, size, "test")
