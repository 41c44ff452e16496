"""Pickles become .npz files, and nothing in them is run."""

import numpy as np
import pytest
from tests.files import writers

from data_files.errors import DataError
from fewshot.data import convert

DATA = np.arange(3 * 2 * 2 * 3, dtype=np.uint8).reshape(3, 2, 2, 3)


def write(folder, content, name="a.pickle"):
  if isinstance(content, dict):
    content = writers.python2_pickle(content)
  return writers.write(folder / name, content)


def test_images_and_labels_are_converted(tmp_path, capsys):
  path = write(tmp_path, {"data": DATA, "labels": [5, 0, 5]})
  convert.main([str(path)])
  assert capsys.readouterr().out == f"{path} -> {path.with_suffix('.npz')}\n"
  with np.load(path.with_suffix(".npz"), allow_pickle=False) as arrays:
    np.testing.assert_array_equal(arrays["data"], DATA)
    assert arrays["labels"].tolist() == [5, 0, 5]
  assert len(list(tmp_path.iterdir())) == 2


def test_lists_of_each_class_are_converted(tmp_path):
  content = {"image_data": DATA, "class_dict": {"n2": [0, 2], "n1": [1]}}
  target = convert.convert(write(tmp_path, content))
  with np.load(target, allow_pickle=False) as arrays:
    assert arrays["labels"].tolist() == ["n2", "n1", "n2"]
    np.testing.assert_array_equal(arrays["data"], DATA)


def test_nothing_is_replaced_without_leave(tmp_path, capsys):
  path = write(tmp_path, {"data": DATA, "labels": [5, 0, 5]})
  target = writers.write(tmp_path / "a.npz", b"mine")
  with pytest.raises(SystemExit) as caught:
    convert.main([str(path)])
  assert caught.value.code == 2
  assert f"{target}: is there already; --force" in capsys.readouterr().err
  assert target.read_bytes() == b"mine"
  convert.main(["--force", str(path)])
  assert target.read_bytes() != b"mine"


def test_an_interrupted_conversion_leaves_nothing(tmp_path, monkeypatch):
  path = write(tmp_path, {"data": DATA, "labels": [5, 0, 5]})

  def interrupt(file, **arrays):
    file.write_bytes(b"half of it")
    raise KeyboardInterrupt

  monkeypatch.setattr(np, "savez", interrupt)
  with pytest.raises(KeyboardInterrupt):
    convert.convert(path)
  assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
  ("content", "complaint"),
  [
    (b"", "the file is empty"),
    (b"cos\nsystem\n(S'touch ran'\ntR.", "refused: it names 'os system'"),
    (b"\x80\x02]q\x01.", "expected a dict"),
    ({"labels": [1]}, "expected a dict with data"),
    ({"data": DATA}, "expected a dict with labels"),
    ({"data": DATA, "labels": [1]}, "3 images, 1 labels"),
    ({"data": DATA, "labels": ["a"]}, "list of integers as labels"),
    ({"data": DATA, "labels": 1}, "list of integers as labels"),
    ({"data": DATA[0], "labels": [1]}, "a numpy array with 4 axes"),
    ({"data": [1], "labels": [1]}, "a numpy array with 4 axes"),
    ({"data": DATA[:, :1], "labels": [1]}, "got [3, 1, 2, 3]"),
    ({"class_dict": {"a": [0]}}, "expected a dict with image_data"),
    ({"image_data": DATA, "class_dict": [1]}, "expected a dict as class_dict"),
    (
      {"image_data": DATA, "class_dict": {"a": [0, 1, 3]}},
      "class 'a': expected images 0..2",
    ),
    (
      {"image_data": DATA, "class_dict": {"a": [0, 1], "b": [1, 2]}},
      "class 'b': an image is in two classes",
    ),
    (
      {"image_data": DATA, "class_dict": {"a": [0, 0, 1, 2]}},
      "class 'a': an image is in two classes",
    ),
    ({"image_data": DATA, "class_dict": {"a": [0, 2]}}, "image 1 is in no"),
    (
      {"image_data": DATA, "class_dict": {"a": [0, "b"]}},
      "list of integers as the images of class 'a'",
    ),
  ],
)
def test_anything_else_is_refused(tmp_path, monkeypatch, content, complaint):
  monkeypatch.chdir(tmp_path)
  path = write(tmp_path, content)
  with pytest.raises(DataError) as caught:
    convert.convert(path)
  assert str(path) in str(caught.value)
  assert complaint in str(caught.value)
  assert list(tmp_path.iterdir()) == [path]


def test_names_that_cannot_be_converted_are_errors(tmp_path):
  with pytest.raises(DataError, match=r"a\.npz: not a pickle, by its name"):
    convert.convert(write(tmp_path, b"", "a.npz"))
  with pytest.raises(DataError, match="No such file"):
    convert.convert(tmp_path / "nothing.pickle")


def test_damaged_pickles_are_converted_or_refused(tmp_path):
  content = {"image_data": DATA, "class_dict": {"n2": [0, 2], "n1": [1]}}
  good = writers.python2_pickle(content)
  failures = 0
  for data in writers.damaged_copies(good, 300):
    try:
      convert.convert(write(tmp_path, data), force=True)
    except DataError:
      failures += 1
  assert failures >= 300
