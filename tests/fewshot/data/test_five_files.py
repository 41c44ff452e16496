"""mini-ImageNet from converted pickles."""

import numpy as np
import pytest

from data_files.errors import DataError
from fewshot.data import convert, mini_imagenet
from tests.fewshot import miniature
from tests.fewshot.miniature import error_of


def test_converted_caches_load(folder):
  miniature.write_three(folder)
  assert "fewshot.convert" in error_of(folder)
  for path in sorted(folder.glob("*.pkl")):
    convert.convert(path)
  miniature.assert_is_the_small_set(
    mini_imagenet.load(folder, **miniature.SETTINGS)
  )


@pytest.mark.parametrize("side", [8, 16])
def test_five_converted_files_load(folder, side):
  miniature.write_five(folder, side)
  message = error_of(folder)
  assert f"{miniature.FIVE}test.pickle: a pickle can run any program" in message
  assert "python -m fewshot.convert" in message
  for path in sorted(folder.glob("*.pickle")):
    convert.convert(path)
  data = mini_imagenet.load(folder, image_size=8)
  assert data.base_val.names == ("0", "1")
  assert (data.val.names, data.test.names) == (("2",), ("3", "4"))
  for split in data.splits().values():
    assert set(split.counts()) == {3}
    for image, label in zip(split.data, split.labels, strict=True):
      assert split.names[label] == str(image[0, 0, 0])
      assert (image == miniature.picture(*image[0, 0, :2])).all()
  assert "no num_base_val, num_base_test with the five" in error_of(folder)


def test_wrong_converted_files_are_named(folder):
  miniature.write_five(folder)
  for path in sorted(folder.glob("*.pickle")):
    convert.convert(path)
  path = folder / f"{miniature.FIVE}val.npz"
  good = np.stack([miniature.picture(1, i) for i in range(3)])
  for data, labels, complaint in (
    (good, np.zeros(3, int), f"{folder}: mini-imagenet: class '0' is in base"),
    (good, np.zeros(2, int), "val.npz: expected 3 integers or strings"),
    (good, np.zeros(3), "val.npz: expected 3 integers or strings"),
    (good[..., :2], np.zeros(3, int), "val.npz: expected data as uint8"),
    (good / 255, np.zeros(3, int), "val.npz: expected data as uint8"),
  ):
    np.savez(path, data=data, labels=labels)
    with pytest.raises(DataError) as caught:
      mini_imagenet.load(folder, image_size=8)
    assert complaint in str(caught.value)
  path.unlink()
  with pytest.raises(DataError, match=r"val\.npz: no such file"):
    mini_imagenet.load(folder, image_size=8)
