"""Data by name, and the command that shows them."""

import pathlib
import re

import numpy as np
import pytest

from data_files.errors import DataError
from fewshot import inspect
from fewshot.data import registry
from tests.data_files import writers

SMALL = {"num_base": 3, "num_val": 1, "num_novel": 2, "num_base_train": 4}


def write_features(folder):
  path = writers.write(folder / "features.npz", b"")
  np.savez(
    path,
    features=np.arange(60.0).reshape(60, 1),
    labels=np.repeat(np.arange(3), 20),
    split=np.arange(3),
  )


def test_all_sources_are_known():
  assert sorted(registry.SOURCES) == [
    *("cifar-fs", "fc100", "features", "folder"),
    *("glyphs", "mini-imagenet", "omniglot"),
  ]


def test_settings_reach_the_source():
  data = registry.load("glyphs", **SMALL, image_size=9)
  assert data.base_train.data.shape == (12, 9, 9, 1)
  assert data.name == "glyphs"


def test_a_home_folder_is_expanded(tmp_path, monkeypatch):
  monkeypatch.setenv("HOME", str(tmp_path))
  write_features(tmp_path / "data")
  for data_dir in ("~/data", pathlib.Path("~/data")):
    assert len(registry.load("features", data_dir).base_train.data) == 10


def test_an_unknown_source_is_answered_with_the_nearest():
  with pytest.raises(DataError, match="unknown data 'glyph'; did you mean"):
    registry.load("glyph")


@pytest.mark.parametrize("source", registry.SOURCES)
def test_settings_that_a_source_does_not_take_are_named(source):
  with pytest.raises(
    DataError, match=f"unknown setting of {source} 'color'.* Known: .*seed"
  ):
    registry.load(source, color=1)


@pytest.mark.parametrize(
  ("source", "advice"),
  [
    ("omniglot", r"https://\S*images_background.zip .*images_evaluation.zip"),
    ("cifar-fs", r"https://\S*cifar-100-binary.tar.gz"),
    ("fc100", r"https://\S*cifar-100-binary.tar.gz"),
    ("mini-imagenet", "miniimagenet_84.npz.* into that.*data_files.unpickle"),
    ("folder", "class"),
    ("features", "features.npz"),
  ],
)
def test_without_files_the_error_tells_what_to_fetch(
  tmp_path, source, advice, monkeypatch
):
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
  for data_dir in (None, tmp_path):
    with pytest.raises(DataError) as caught:
      registry.load(source, data_dir)
    assert re.search(advice, str(caught.value))
    assert "\n" not in str(caught.value)
  assert str(tmp_path) in str(caught.value)


def test_folders_that_are_wrong_are_errors(tmp_path):
  for data_dir in (tmp_path / "nowhere", writers.write(tmp_path / "a", "b")):
    with pytest.raises(DataError, match=f"{data_dir.name}: no such folder"):
      registry.load("omniglot", data_dir)
  with pytest.raises(DataError, match="glyphs has no files"):
    registry.load("glyphs", tmp_path)


def test_the_command_shows_splits_and_classes(capsys):
  inspect.main(["glyphs", "--image_size", "12"])
  lines = capsys.readouterr().out.splitlines()
  assert lines[0] == "glyphs: 12 x 12 x 1 uint8"
  assert lines[2].split() == ["base_train", "64", "2560", "40,", "40,", "40"]
  assert lines[6].split()[:3] == ["test", "20", "800"]
  assert "'glyph0000', 'glyph0001'" in lines[7]
  assert lines[7].endswith("... (64)")


def test_the_command_shows_features(tmp_path, capsys):
  write_features(tmp_path)
  inspect.main(["features", "--data_dir", str(tmp_path)])
  out = capsys.readouterr().out
  assert out.startswith("features: 1 float32\n")
  assert "base_train: '0'\n" in out


@pytest.mark.parametrize(
  ("arguments", "complaint"),
  [
    (["glyph"], "did you mean 'glyphs'"),
    (
      ["features", "--image_size=3"],
      "setting of features 'image_size'",
    ),
    (["features"], "features needs data_dir"),
  ],
)
def test_errors_of_the_command_are_one_line(arguments, complaint, capsys):
  with pytest.raises(SystemExit) as caught:
    inspect.main(arguments)
  assert caught.value.code == 2
  message = capsys.readouterr().err
  assert message.startswith("error: ")
  assert message.count("\n") == 1
  assert complaint in message
