"""Separate data folders for every test."""

import pytest


@pytest.fixture(autouse=True)
def cache_home(tmp_path, monkeypatch):
  """Keeps decoded images out of the user's own cache."""
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
  """An empty data_dir."""
  (tmp_path / "data").mkdir()
  return tmp_path / "data"
