"""The command that downloads and prepares data sets; TFDS is replaced."""

import sys
import types

import pytest
import tensorflow_datasets as tfds

from data_files import prepare


def error_of(capsys, *arguments):
  with pytest.raises(SystemExit) as stopped:
    prepare.main([*map(str, arguments)])
  assert stopped.value.code == 2
  return capsys.readouterr().err


@pytest.fixture
def calls(monkeypatch):
  """What TFDS is asked for, with TensorFlow pretended to be there."""
  calls = []

  class Builder:
    data_dir = "prepared"

    def __init__(self, name, data_dir):
      self.asked = (name, str(data_dir))

    def download_and_prepare(self, file_format):
      calls.append((*self.asked, file_format))

  converter = types.ModuleType("convert_format_utils")
  converter.convert_dataset = lambda **arguments: calls.append(arguments)
  package = types.ModuleType("tensorflow_datasets.scripts.cli")
  package.convert_format_utils = converter
  monkeypatch.setitem(sys.modules, package.__name__, package)
  monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tf"))
  monkeypatch.setattr(tfds, "builder", Builder)
  return calls


def test_data_sets_are_prepared_as_array_record(
  calls, tmp_path, monkeypatch, capsys
):
  monkeypatch.setenv("TFDS_DATA_DIR", str(tmp_path))
  prepare.main(["imdb_reviews", "omniglot"])
  prepare.main(["cifar10", "--data_dir=elsewhere"])
  assert calls == [
    ("imdb_reviews", str(tmp_path), "array_record"),
    ("omniglot", str(tmp_path), "array_record"),
    ("cifar10", "elsewhere", "array_record"),
  ]
  assert "omniglot: prepared\n" in capsys.readouterr().out


def test_a_folder_is_converted_in_place(calls, tmp_path):
  prepare.main(["--convert", str(tmp_path)])
  (arguments,) = calls
  assert arguments == {
    "out_dir": None,
    "out_file_format": "array_record",
    "dataset_version_dir": str(tmp_path),
  }


def test_without_tensorflow_one_line_tells_what_to_install(monkeypatch, capsys):
  monkeypatch.setitem(sys.modules, "tensorflow", None)
  message = error_of(capsys, "cifar100")
  assert message == (
    "error: preparing data needs TensorFlow: pip install 'nam-jax[tf]'\n"
  )
  assert "name data sets: imdb_reviews" in error_of(capsys)
  assert "unknown data set 'mnist'" in error_of(capsys, "mnist")
