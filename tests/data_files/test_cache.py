"""Folders in the cache are complete or made again."""

import pytest

from data_files import cache, errors


@pytest.fixture(autouse=True)
def cache_home(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
  return tmp_path


def write_number(number):
  return lambda folder: (folder / "file").write_text(str(number))


def kept_number(number):
  return (cache.keep("numbers", write_number(number)) / "file").read_text()


def test_a_folder_is_made_once(cache_home):
  assert kept_number(1) == kept_number(2) == "1"
  assert (cache_home / "nam-jax" / "numbers" / "file").is_file()


def test_home_is_used_without_the_variable(tmp_path, monkeypatch):
  monkeypatch.setenv("HOME", str(tmp_path / "home"))
  for value in ("", "relative"):
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    folder = cache.keep("numbers", write_number(1))
    assert folder == tmp_path / "home" / ".cache" / "nam-jax" / "numbers"


def test_an_interrupted_run_leaves_nothing(cache_home):
  def interrupt(folder):
    write_number(1)(folder)
    raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    cache.keep("numbers", interrupt)
  assert list((cache_home / "nam-jax").iterdir()) == []
  assert kept_number(2) == "2"


@pytest.mark.parametrize("damage", ["changed", "missing", "added", "unsealed"])
def test_a_damaged_folder_is_made_again(damage, caplog):
  folder = cache.keep("numbers", write_number(1))
  if damage == "changed":
    (folder / "file").write_text("7")
  elif damage == "missing":
    (folder / "file").unlink()
  elif damage == "added":
    (folder / "other").touch()
  else:
    (folder / "checksums.json").write_text("{")
  assert kept_number(2) == "2"
  assert f"{folder} is damaged" in caplog.text


def test_the_folder_of_a_faster_process_is_taken():
  def be_slow(folder):
    cache.keep("numbers", write_number(1))
    write_number(2)(folder)

  folder = cache.keep("numbers", be_slow)
  assert (folder / "file").read_text() == "1"


def test_a_place_that_cannot_be_written_is_named(cache_home):
  (cache_home / "nam-jax").touch()
  with pytest.raises(errors.DataError, match=r"nam-jax.*XDG_CACHE_HOME"):
    kept_number(1)
