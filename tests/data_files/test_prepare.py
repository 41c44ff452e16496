"""The command that downloads and prepares data sets; TFDS is replaced."""

import json
import sys
import types

import pytest
import tensorflow_datasets as tfds
from array_record.python import array_record_module

from data_files import prepare, tfds_source
from tests.data_files import writers


def error_of(capsys, *arguments):
  with pytest.raises(SystemExit) as stopped:
    prepare.main([*map(str, arguments)])
  assert stopped.value.code == 2
  return capsys.readouterr().err


@pytest.fixture
def calls(monkeypatch):
  """What TFDS is asked for, with a fake TensorFlow."""
  calls = []

  class Builder:
    data_dir = "prepared"

    def __init__(self, name, data_dir):
      self.asked = (name, str(data_dir))

    def download_and_prepare(self, file_format):
      calls.append((*self.asked, file_format))

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


def test_a_folder_in_tfrecord_is_converted_in_place(tmp_path, monkeypatch):
  """Uses array_record files in place of those that TensorFlow reads."""
  features, examples = {"text": None}, [{"text": "a"}, {"text": "b" * 5000}]
  folder = writers.write_prepared(
    tmp_path, "tiny", features, {"train": examples}
  )
  (path,) = folder.glob("tiny-train.*")
  path.rename(folder / path.name.replace("array_record", "tfrecord"))
  info = json.loads((folder / "dataset_info.json").read_text())
  (folder / "dataset_info.json").write_text(
    json.dumps(info | {"fileFormat": "tfrecord"})
  )

  class TFRecordDataset:
    def __init__(self, path):
      self.path = path

    def as_numpy_iterator(self):
      return iter(array_record_module.ArrayRecordReader(self.path).read_all())

  tensorflow = types.ModuleType("tensorflow")
  tensorflow.data = types.SimpleNamespace(TFRecordDataset=TFRecordDataset)
  with monkeypatch.context() as patch:
    patch.setitem(sys.modules, "tensorflow", tensorflow)
    prepare.main(["--convert", str(folder)])
  (texts,) = tfds_source.read(folder, "train", ("text",))
  assert texts == [b"a", b"b" * 5000]


def test_without_tensorflow_one_line_tells_what_to_install(monkeypatch, capsys):
  monkeypatch.setitem(sys.modules, "tensorflow", None)
  message = error_of(capsys, "cifar100")
  assert message == (
    "error: preparing data needs TensorFlow: pip install 'nam-jax[tf]'\n"
  )
  assert "name data sets: imdb_reviews" in error_of(capsys)
  assert "unknown data set 'mnist'" in error_of(capsys, "mnist")
