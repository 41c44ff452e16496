"""Tasks by name."""

import pathlib

import pytest

from data_files import errors
from lra_tasks import registry
from tests.data_files import writers


def write_reviews(folder):
  for split in ("train", "test"):
    lines = writers.json_lines(*[{"text": "A long review.", "label": 1}] * 2)
    writers.write(folder / f"imdb_{split}.jsonl", lines)


def test_every_task_has_one_name():
  names = ["listops", "text", "retrieval", "image", "pathfinder"]
  assert list(registry.TASKS) == names


def test_settings_reach_the_task(tmp_path):
  write_reviews(tmp_path)
  a_task = registry.make_task("text", str(tmp_path), max_length=6)
  assert a_task.max_length == 6
  assert a_task.train[0]["inputs"].shape == (6,)


def test_generated_tasks_need_no_folder(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  sizes = {"num_train": 3, "num_validation": 2, "num_test": 1}
  a_task = registry.make_task(
    "listops", None, max_length=20, min_length=3, **sizes
  )
  assert len(a_task.train) == 3
  assert a_task.max_length == 20


def test_a_home_folder_is_expanded(tmp_path, monkeypatch):
  monkeypatch.setenv("HOME", str(tmp_path))
  write_reviews(tmp_path / "data")
  for data_dir in ("~/data", pathlib.Path("~/data")):
    assert len(registry.make_task("text", data_dir).train) == 1


@pytest.mark.parametrize(
  ("name", "settings", "complaint"),
  [
    ("imag", {}, "unknown task 'imag'; did you mean 'image'?"),
    ("image", {"max_length": 5}, "setting of image 'max_length'. Known: none"),
    ("retrieval", {"seed": 1}, "of retrieval 'seed'. Known: max_length"),
    ("listops", {"depth": 5}, "'depth'; did you mean 'max_depth'?"),
    ("pathfinder", {"levl": 1}, "'levl'; did you mean 'level'?"),
  ],
)
def test_unknown_names_are_answered_with_the_known(name, settings, complaint):
  with pytest.raises(errors.DataError) as caught:
    registry.make_task(name, None, **settings)
  assert complaint in str(caught.value)


def test_a_folder_that_does_not_exist_is_an_error(tmp_path):
  for data_dir in (tmp_path / "nowhere", writers.write(tmp_path / "file", "a")):
    with pytest.raises(
      errors.DataError, match=f"{data_dir.name}: no such folder"
    ):
      registry.make_task("text", data_dir)


@pytest.mark.parametrize("name", sorted(set(registry.TASKS) - {"listops"}))
def test_tasks_without_files_tell_what_to_fetch(tmp_path, name, monkeypatch):
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
  for data_dir in (None, tmp_path):
    with pytest.raises(errors.DataError, match=r"https://.*gz"):
      registry.make_task(name, data_dir)
