"""Small files that would unpack to large ones, and things that are no files."""

import gzip
import io
import lzma
import os
import pathlib
import re
import socket
import struct
import tarfile
import zipfile
import zlib

import numpy as np
import pytest

from data_files import disk, images, limit
from data_files.errors import DataError, excerpt
from tests.data_files import writers

ZEROS = bytes(2_000_000)
ANY = re.compile(r"top/\w+\.txt")


def write_zip(path, contents, method=zipfile.ZIP_DEFLATED):
  with zipfile.ZipFile(path, "w", method) as archive:
    for name, data in contents:
      archive.writestr(name, data)
  return path


def write_npz(path):
  np.savez_compressed(path, x=np.zeros(len(ZEROS), np.uint8))
  return path


def read_lines(path):
  return list(disk.lines(path))


def read_members(path):
  return list(disk.members(path, ANY))


def read_array(path):
  return disk.arrays(path, ["x"])


BOMBS = {
  "line.gz": (lambda p: p.write_bytes(gzip.compress(ZEROS)), read_lines),
  "lines.gz": (
    lambda p: p.write_bytes(gzip.compress(b"a\n" * 1_000_000)),
    read_lines,
  ),
  "line.xz": (lambda p: p.write_bytes(lzma.compress(ZEROS)), read_lines),
  "a.tar.gz": (
    lambda p: writers.write_archive(p, {"top/a.txt": ZEROS}),
    read_members,
  ),
  "other.tar.gz": (
    lambda p: writers.write_archive(p, {"top/a.txt": b"a", "b": ZEROS}),
    read_members,
  ),
  "a.zip": (lambda p: write_zip(p, [("top/a.txt", ZEROS)]), read_members),
  "two.zip": (
    lambda p: write_zip(p, [(f"top/{n}.txt", ZEROS[::2]) for n in "ab"]),
    read_members,
  ),
  "x.npz": (write_npz, read_array),
  "large.png": (
    lambda p: p.write_bytes(writers.png(np.zeros((500, 500), np.uint8))),
    lambda p: images.square(str(p), disk.read(p), 8),
  ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_a_file_unpacks_to_is_limited(tmp_path, monkeypatch, name):
  write, read = BOMBS[name]
  write(tmp_path / name)
  assert (tmp_path / name).stat().st_size < 20_000
  monkeypatch.setenv(limit.VARIABLE, "1500000")
  message = writers.error_of(read, tmp_path / name)
  assert message.startswith(f"{tmp_path / name}: ")
  assert "more than 1,500,000 bytes" in message
  assert f"set {limit.VARIABLE} to a larger number" in message
  monkeypatch.setenv(limit.VARIABLE, "3000000")
  read(tmp_path / name)


def test_a_file_may_unpack_to_its_own_size(tmp_path, monkeypatch):
  monkeypatch.setenv(limit.VARIABLE, "1000")
  path = write_zip(tmp_path / "a.zip", [("top/a.txt", ZEROS)], 0)
  assert read_members(path) == [("top/a.txt", ZEROS)]
  path.with_suffix(".tsv").write_bytes(ZEROS)
  assert len(read_lines(path.with_suffix(".tsv"))) == 1


@pytest.mark.parametrize("value", ["much", "-1", "1e9", "9" * 30])
def test_a_limit_that_is_no_number_is_named(monkeypatch, value):
  monkeypatch.setenv(limit.VARIABLE, value)
  message = writers.error_of(limit.Allowance, 0)
  assert message.startswith(f"{limit.VARIABLE}={value}: expected a number")


def test_the_limit_is_a_gibibyte():
  limit.Allowance(0).take(1 << 30)
  with pytest.raises(DataError, match=r"more than 1,073,741,824 bytes"):
    limit.Allowance(0).take((1 << 30) + 1)


def test_the_size_in_a_zip_is_refused_before_anything_is_read(tmp_path):
  path = write_zip(tmp_path / "a.zip", [("top/a.txt", b"a")])
  data = bytearray(path.read_bytes())
  struct.pack_into("<I", data, data.rfind(b"PK\1\2") + 24, 3 << 30)
  path.write_bytes(data)
  assert "unpacks to more than" in writers.error_of(read_members, path)


def test_a_zip_never_unpacks_to_more_than_it_says(tmp_path):
  path = write_zip(tmp_path / "a.zip", [("top/a.txt", ZEROS)])
  data = bytearray(path.read_bytes())
  struct.pack_into("<I", data, data.rfind(b"PK\1\2") + 24, 10)
  path.write_bytes(data)
  assert "Bad CRC-32" in writers.error_of(read_members, path)


def test_other_ways_to_pack_are_refused(tmp_path):
  path = write_zip(
    tmp_path / "a.zip", [("top/a.txt", ZEROS)], zipfile.ZIP_BZIP2
  )
  message = writers.error_of(read_members, path)
  assert "top/a.txt is neither stored nor deflated" in message


def test_a_sparse_file_in_an_archive_is_refused(tmp_path):
  member = tarfile.TarInfo("top/a.txt")
  member.type, member.size = tarfile.GNUTYPE_SPARSE, 0
  header = bytearray(member.tobuf(tarfile.GNU_FORMAT))
  header[483:495] = b"%011o\0" % (1 << 32)  # its size once it is unpacked
  header[148:156] = b" " * 8
  header[148:156] = b"%06o\0 " % sum(header)
  path = tmp_path / "a.tar.gz"
  path.write_bytes(gzip.compress(bytes(header) + bytes(1024)))
  assert "stored as a sparse file" in writers.error_of(read_members, path)


@pytest.mark.parametrize(
  "pack",
  [
    lambda path, contents: write_zip(path.with_suffix(".zip"), contents),
    lambda path, contents: _write_tar(path.with_suffix(".tar.gz"), contents),
  ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_refused(tmp_path, pack):
  path = pack(tmp_path / "a", [("top/a.txt", b"first"), ("top/a.txt", b"2nd")])
  message = writers.error_of(read_members, path)
  assert message.startswith(f"{path}: two files have the name top/a.txt")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(tmp_path):
  stream = io.BytesIO()
  np.save(stream, np.zeros(3))
  contents = [("x.npy", stream.getvalue())] * 2
  path = write_zip(tmp_path / "a.npz", contents)
  message = writers.error_of(disk.arrays, path, ["x"])
  assert "two files have the name x.npy" in message


def test_a_long_name_is_cut_in_the_error(tmp_path):
  path = write_zip(tmp_path / "a.zip", [(f"top/{'a' * 5000}.txt", b"a")])
  message = writers.error_of(read_members, path)
  assert len(message) < len(str(path)) + 250


def _write_tar(path, contents):
  stream = io.BytesIO()
  with tarfile.open(fileobj=stream, mode="w:gz") as archive:
    for name, data in contents:
      member = tarfile.TarInfo(name)
      member.size = len(data)
      archive.addfile(member, io.BytesIO(data))
  return writers.write(path, stream.getvalue())


def huge_png():
  """A PNG whose header says that it has 177 million pixels."""
  data = bytearray(writers.png(np.zeros((4, 4), np.uint8)))
  data[16:24] = struct.pack(">II", 13_300, 13_300)
  data[29:33] = struct.pack(">I", zlib.crc32(data[12:29]))
  return bytes(data)


@pytest.mark.filterwarnings("ignore:Image size")
def test_images_of_many_pixels_are_not_decoded():
  message = writers.error_of(images.square, "here", huge_png(), 8)
  assert message.startswith("here: it unpacks to more than 1,073,741,824 bytes")
  message = writers.error_of(images.png, "here", huge_png(), (4, 4))
  assert "here: it unpacks to more than" in message
  other = writers.png(np.zeros((5, 4), np.uint8))
  message = writers.error_of(images.png, "here", other, (4, 4))
  assert message == "here: expected uint8 [4, 4], got 5 x 4 pixels"


def make_pipe(path):
  os.mkfifo(path)


def make_socket(path):
  with socket.socket(socket.AF_UNIX) as server:
    server.bind(str(path))


@pytest.mark.parametrize(
  ("make", "kind"),
  [
    (make_pipe, "a pipe"),
    (make_socket, "a socket"),
    (lambda path: path.symlink_to("/dev/zero"), "a device"),
    (lambda path: path.mkdir(), "a folder"),
  ],
)
def test_what_is_no_file_is_refused(tmp_path, monkeypatch, make, kind):
  monkeypatch.chdir(tmp_path)  # names of sockets are short
  for name, read in {
    "a.png": disk.read,
    "a.tsv": read_lines,
    "a.gz": read_lines,
    "a.xz": read_lines,
    "a.zip": read_members,
    "a.tar.gz": read_members,
    "a.npz": read_array,
  }.items():
    path = pathlib.Path(name)
    make(path)
    assert writers.error_of(read, path) == f"{name}: it is {kind}, not a file"


def test_excerpts_are_short_printable_lines():
  assert excerpt("a\n  b\x00\ud800") == r"a b\x00\ud800"
  assert excerpt("x" * 200) == "x" * 200
  for text in ("x" * 201, "\x00" * 300, " " * 500 + "y"):
    assert len(excerpt(text)) <= 200
    assert excerpt(text).endswith("...")
