"""Episodes that fit the data."""

import pytest

from data_files.errors import DataError
from fewshot import plan
from fewshot.config import FewShotConfig
from fewshot.data import glyphs


def data(**sizes):
  usual = {"num_base": 3, "num_val": 2, "num_novel": 4, "num_base_val": 1}
  return glyphs.load(**usual | {"image_size": 8} | sizes)


def test_large_data_changes_nothing():
  config = FewShotConfig()
  large = data(num_base=6, num_val=5, num_novel=5)
  assert plan.fitted(config, large) == config


@pytest.mark.parametrize(
  ("sizes", "expected"),
  [
    ({}, (2, (1, 5), 15, 3)),  # two validation classes
    ({"num_base": 2}, (1, (1, 5), 15, 3)),  # one remains in an episode
    ({"num_novel_images": 4}, (2, (1, 3), 1, 3)),
    ({"num_base_train": 4}, (2, (1, 3), 15, 1)),
    ({"num_novel_images": 2, "num_base_train": 2}, (2, (1,), 1, 1)),
  ],
)
def test_episodes_shrink_to_what_is_there(sizes, expected):
  found = plan.fitted(FewShotConfig(), data(**sizes))
  fields = (found.num_way, found.shots, found.num_query, found.train_query)
  assert fields == expected


def test_too_little_is_said_with_numbers():
  with pytest.raises(DataError, match="3 base classes with 1 training images"):
    plan.fitted(FewShotConfig(), data(num_base_train=1))
