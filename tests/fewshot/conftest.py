"""Folders of their own for the data of every test."""

import pytest


@pytest.fixture(autouse=True)
def cache_home(tmp_path, monkeypatch):
  """What is decoded is kept apart from the user's own cache."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
  """An empty data_dir."""
  (tmp_path / "data").mkdir()
  return tmp_path / "data"
