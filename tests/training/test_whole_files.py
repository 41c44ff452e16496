"""Files are replaced completely or not at all."""

import json
import os

import numpy as np
import pytest

from nam_jax.training import whole_files


def test_text_json_and_arrays_are_written(tmp_path):
  whole_files.write_text(tmp_path / "a.txt", "novel→base")
  assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "novel→base"
  whole_files.write_json(tmp_path / "a.json", {"x": [1, 2]})
  assert json.loads((tmp_path / "a.json").read_text()) == {"x": [1, 2]}
  whole_files.write_npz(tmp_path / "a.npz", {"x/y": np.arange(3)})
  with np.load(tmp_path / "a.npz", allow_pickle=False) as file:
    assert file["x/y"].tolist() == [0, 1, 2]
  assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch, broken):
  def fail(*_):
    raise OSError("disk full")

  path = tmp_path / "file"
  whole_files.write_bytes(path, b"old")
  monkeypatch.setattr(os, broken, fail)
  with pytest.raises(OSError, match="disk full"):
    whole_files.write_bytes(path, b"new and longer")
  assert path.read_bytes() == b"old"


def test_checksum_sees_size_and_content(tmp_path):
  path, found = tmp_path / "file", []
  for content in (b"", b"abc", b"abd", b"abc\0"):
    path.write_bytes(content)
    found.append(tuple(whole_files.checksum(path)))
  assert [size for size, _ in found] == [0, 3, 3, 4]
  assert len(set(found)) == 4
