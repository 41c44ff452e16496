"""The files that readers open are known by name and size."""

import numpy as np
import pytest

from data_files import disk, errors, files_read
from tests.data_files import writers


def test_files_are_named_from_their_common_folder(tmp_path):
  lines = writers.write(tmp_path / "a" / "lines.tsv", "one\n")
  np.savez(tmp_path / "arrays.npz", x=np.zeros(2))
  with files_read.recorded() as files:
    list(disk.lines(lines))
    disk.arrays(tmp_path / "arrays.npz", ["x"])
  size = (tmp_path / "arrays.npz").stat().st_size
  assert files_read.named(files) == {"a/lines.tsv": 4, "arrays.npz": size}
  list(disk.lines(lines))  # nobody asks
  with files_read.recorded() as files:
    list(disk.lines(lines))
  assert files_read.named(files) == {"lines.tsv": 4}
  assert files_read.named({}) == {}


def test_many_files_are_counted():
  files = {f"/data/{i}.png": 3 for i in range(30)}
  assert files_read.named(files) == {"30 files": 90}


def test_a_missing_file_has_no_stamp(tmp_path):
  with pytest.raises(errors.DataError, match="missing: No such file"):
    files_read.stamp(tmp_path / "missing")
