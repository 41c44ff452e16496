"""Files in archives, read without unpacking."""

import re
import struct
import zipfile

import pytest

from data_files import disk
from data_files.errors import DataError
from tests.data_files import writers

CONTENTS = {"top/a.txt": b"first", "top/b.txt": b"second", "top/c.bin": b"x"}
TEXTS = re.compile(r"top/(\w+)\.txt")


def write_zip(path, contents=CONTENTS):
  with zipfile.ZipFile(path, "w") as archive:
    archive.writestr("top/", b"")
    for name, data in contents.items():
      archive.writestr(name, data)
  return path


def write_all(folder):
  writers.write_archive(folder / "all.tar.gz", CONTENTS)
  return [write_zip(folder / "all.zip"), folder / "all.tar.gz"]


def test_wanted_files_come_from_archives(tmp_path):
  for path in write_all(tmp_path):
    found = dict(disk.members(path, TEXTS))
    assert found == {"top/a.txt": b"first", "top/b.txt": b"second"}


def test_an_error_names_the_file_once(tmp_path):
  for message in ("wrong", f"{tmp_path / 'other'}: wrong"):
    with pytest.raises(DataError) as caught, disk.about(tmp_path / "file"):
      raise DataError(message)
    assert str(caught.value).count(str(tmp_path)) == 1


def test_an_unreadable_file_is_an_error(tmp_path):
  with pytest.raises(DataError, match="nothing: no such file"):
    disk.read(tmp_path / "nothing")


def test_an_archive_that_lost_an_entry_is_refused(tmp_path):
  path = write_zip(tmp_path / "all.zip")
  data = bytearray(path.read_bytes())
  # The comment of the second entry of the directory now covers the third.
  second = data.rfind(b"PK\1\2", 0, data.rfind(b"top/b.txt"))
  first = data.rfind(b"PK\1\2", 0, second)
  struct.pack_into("<H", data, first + 32, data.rfind(b"PK\1\2") - second)
  path.write_bytes(data)
  with zipfile.ZipFile(path) as archive:
    assert len(archive.namelist()) == 3
  with pytest.raises(DataError, match="it has 4 entries, 3 were found"):
    list(disk.members(path, TEXTS))


def test_an_entry_without_a_name_is_not_wanted(tmp_path):
  path = write_zip(tmp_path / "all.zip", {"top/a.txt": b"a", "x.txt": b"b"})
  data = path.read_bytes()
  path.write_bytes(data.replace(b"x.txt", bytes(5)))  # zipfile cuts at zeros
  assert list(disk.members(path, TEXTS)) == [("top/a.txt", b"a")]


def test_empty_files_and_archives_without_any_are_errors(tmp_path):
  path = write_zip(tmp_path / "all.zip", {"top/a.txt": b""})
  with pytest.raises(DataError, match=r"all\.zip: top/a\.txt is empty"):
    list(disk.members(path, TEXTS))
  path = write_zip(tmp_path / "all.zip", {"other.txt": b"a"})
  with pytest.raises(DataError, match="has no file like"):
    list(disk.members(path, TEXTS))
