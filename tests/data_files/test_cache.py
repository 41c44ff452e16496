"""Folders in the cache are complete or made again."""

import errno
import os
import subprocess
import sys

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


def test_leftovers_of_a_killed_process_are_removed(cache_home):
  root = cache_home / "nam-jax"
  (root / "numbers.abcd1234" / "numbers").mkdir(parents=True)
  (root / "numbers.abcd1234" / "numbers" / "file").write_text("1")
  (root / "numbers-2").mkdir()
  assert kept_number(2) == "2"
  assert {path.name for path in root.iterdir()} == {"numbers", "numbers-2"}


def test_what_a_living_process_makes_is_not_removed(cache_home):
  program = (
    "import os, sys; from data_files import cache\n"
    "def make(folder):\n"
    "  (folder / 'file').write_text('1')\n"
    "  print('making', flush=True)\n"
    "  sys.stdin.read()\n"
    "cache.keep('others', make)\n"
  )
  with subprocess.Popen(
    [sys.executable, "-c", program],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
  ) as process:
    assert process.stdout.readline() == b"making\n"
    assert kept_number(2) == "2"
    root = cache_home / "nam-jax"
    (folder,) = root.glob("others.*")
    process.stdin.close()
    assert process.wait() == 0
  assert not folder.exists()
  assert (root / "others" / "file").read_text() == "1"


def test_a_killed_process_leaves_what_the_next_one_removes(cache_home):
  program = (
    "import os; from data_files import cache\n"
    "cache.keep('others', lambda folder: os.kill(os.getpid(), 9))\n"
  )
  subprocess.run([sys.executable, "-c", program], check=False)
  root = cache_home / "nam-jax"
  assert len(list(root.iterdir())) == 1
  assert kept_number(2) == "2"
  assert [path.name for path in root.iterdir()] == ["numbers"]


def test_a_drive_without_locks_is_used_all_the_same(cache_home, monkeypatch):
  def refuse(*_):
    raise OSError(errno.ENOLCK, "No locks available")

  monkeypatch.setattr(cache.fcntl, "flock", refuse)
  (cache_home / "nam-jax" / "numbers.abcd1234").mkdir(parents=True)
  assert kept_number(2) == "2"
  assert len(list((cache_home / "nam-jax").iterdir())) == 2


def test_a_pipe_in_a_folder_is_damage(caplog):
  folder = cache.keep("numbers", write_number(1))
  (folder / "file").unlink()
  os.mkfifo(folder / "file")
  assert kept_number(2) == "2"
  assert f"{folder} is damaged" in caplog.text


def test_a_place_that_cannot_be_written_is_named(cache_home):
  (cache_home / "nam-jax").touch()
  with pytest.raises(errors.DataError, match=r"nam-jax.*XDG_CACHE_HOME"):
    kept_number(1)
