"""Tasks by the benchmark's names."""

import pathlib

import pytest
from tests.files import writers

from data_files import errors
from lra_tasks import registry


def write_reviews(folder):
  for split in ("train", "test"):
    line = writers.json_lines({"text": "A long review.", "label": 1})
    writers.write(folder / f"imdb_{split}.jsonl", line)


def test_all_names_of_the_benchmark_are_known():
  pathfinders = [
    f"pathfinder{side}_{level}"
    for side in (32, 64, 128, 256)
    for level in ("easy", "inter", "hard")
  ]
  others = ["basic", "imdb_reviews", "aan", "cifar10"]
  assert sorted(registry.TASKS) == sorted(others + pathfinders)


def test_settings_reach_the_task(tmp_path):
  write_reviews(tmp_path)
  a_task = registry.make_task("imdb_reviews", str(tmp_path), max_length=6)
  assert a_task.max_length == 6
  assert a_task.train[0]["inputs"].shape == (6,)


def test_generated_tasks_need_no_folder(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  sizes = {"num_train": 3, "num_validation": 2, "num_test": 1}
  a_task = registry.make_task(
    "basic", None, max_length=20, min_length=3, **sizes
  )
  assert len(a_task.train) == 3
  assert a_task.max_length == 20


def test_a_home_folder_is_expanded(tmp_path, monkeypatch):
  monkeypatch.setenv("HOME", str(tmp_path))
  write_reviews(tmp_path / "data")
  for data_dir in ("~/data", pathlib.Path("~/data")):
    assert len(registry.make_task("imdb_reviews", data_dir).train) == 1


@pytest.mark.parametrize(
  ("name", "nearest"),
  [
    ("imdb", "imdb_reviews"),
    ("cifar-10", "cifar10"),
    ("pathfinder32", "pathfinder32_"),
    ("zzz", ""),
  ],
)
def test_an_unknown_name_is_answered_with_the_nearest(name, nearest):
  with pytest.raises(
    ValueError, match=f"no task '{name}', the nearest is"
  ) as e:
    registry.make_task(name, None)
  assert f"nearest is '{nearest}" in str(e.value)
  assert "pathfinder256_hard" in str(e.value)


@pytest.mark.parametrize(
  ("name", "settings", "complaint"),
  [
    ("cifar10", {"max_length": 5}, "not take max_length; it takes no settings"),
    ("aan", {"seed": 1, "max_length": 5}, "not take seed; it takes max_length"),
    ("basic", {"depth": 5}, "not take depth; it takes max_length, min_length"),
    ("pathfinder32_easy", {"a": 1, "b": 2}, "not take a, b; it takes no"),
  ],
)
def test_settings_that_a_task_does_not_take_are_named(
  name, settings, complaint
):
  with pytest.raises(ValueError, match=f"task '{name}' does {complaint}"):
    registry.make_task(name, None, **settings)


def test_a_folder_that_does_not_exist_is_an_error(tmp_path):
  for data_dir in (tmp_path / "nowhere", writers.write(tmp_path / "file", "a")):
    with pytest.raises(
      errors.DataError, match=f"{data_dir.name}: no such folder"
    ):
      registry.make_task("imdb_reviews", data_dir)


@pytest.mark.parametrize("name", sorted(set(registry.TASKS) - {"basic"}))
def test_tasks_without_files_tell_what_to_fetch(tmp_path, name):
  for data_dir in (None, tmp_path):
    with pytest.raises(errors.DataError, match=r"https://.*gz"):
      registry.make_task(name, data_dir)
