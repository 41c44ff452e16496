"""Files of archives and folders, read without unpacking."""

import re
import struct
import zipfile

import pytest
from tests.files import writers

from data_files import disk
from data_files.errors import DataError

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
  writers.write_folder(folder, CONTENTS)
  return [write_zip(folder / "all.zip"), folder / "all.tar.gz", folder / "top"]


def test_wanted_files_come_from_archives_and_folders(tmp_path):
  for path in write_all(tmp_path):
    found = dict(disk.members(path, TEXTS))
    assert found == {"top/a.txt": b"first", "top/b.txt": b"second"}


def test_parsed_files_come_in_the_order_of_their_names(tmp_path):
  for path in write_all(tmp_path):
    assert disk.parsed(path, TEXTS, len, ("b", "a")) == [6, 5]
    with pytest.raises(DataError, match=f"{path.name}: has no d, e"):
      disk.parsed(path, TEXTS, len, ("a", "d", "e"))


def test_a_file_that_cannot_be_parsed_is_named(tmp_path):
  def refuse(data):
    raise DataError(f"{len(data)} bytes")

  path = write_zip(tmp_path / "all.zip", {"top/a.txt": b"first"})
  with pytest.raises(DataError, match=r"all\.zip: top/a\.txt: 5 bytes"):
    disk.parsed(path, TEXTS, refuse, ("a",))


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


def test_empty_files_and_archives_without_any_are_errors(tmp_path):
  path = write_zip(tmp_path / "all.zip", {"top/a.txt": b""})
  with pytest.raises(DataError, match=r"all\.zip: top/a\.txt is empty"):
    list(disk.members(path, TEXTS))
  path = write_zip(tmp_path / "all.zip", {"other.txt": b"a"})
  with pytest.raises(DataError, match="has no file like"):
    list(disk.members(path, TEXTS))
