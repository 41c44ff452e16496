"""Pathfinder from the benchmark's folders and from .npz files."""

import os
import pathlib
import shutil

import numpy as np
import pytest
from PIL import Image

from data_files import errors, images
from lra_tasks import pathfinder
from tests.data_files import writers

NAME = "pathfinder32_hard"
FOLDER = "pathfinder32/curv_contour_length_14"


@pytest.fixture(autouse=True)
def cache_home(tmp_path, monkeypatch):
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
  """12 images in the benchmark's layout: image k is all k, labelled if odd."""
  folder = tmp_path / "data" / FOLDER
  (folder / "metadata").mkdir(parents=True)
  for k in range(12):
    (folder / "imgs" / str(k)).mkdir(parents=True)
    image = Image.fromarray(np.full((32, 32), k, np.uint8))
    image.save(folder / "imgs" / str(k) / "sample_0.png")
    line = f"imgs/{k} sample_0.png 0 {k % 2} 1.0 14 4 2 0.5 1 1\n"
    (folder / "metadata" / f"{k}.npy").write_text(line)
  return folder


def make_task(folder, **settings):
  return pathfinder.make_task(folder.parents[1], **settings)


def numbers(made):
  """The pixel value of each image, after checking the row."""
  rows = [*made.train, *made.validation, *made.test]
  for row in rows:
    assert row["inputs"].shape == (1024,)
    assert row["mask"].all()
    assert (row["inputs"] == row["inputs"][0]).all()
    assert row["label"] == row["inputs"][0] % 2
  return [int(row["inputs"][0]) for row in rows]


def test_images_are_in_the_order_of_the_metadata_then_shuffled(folder):
  made = make_task(folder)
  order = np.random.default_rng(0).permutation(12)
  assert numbers(made) == order.tolist() != list(range(12))
  assert [len(made.train), len(made.validation), len(made.test)] == [9, 1, 2]


def test_the_task_has_the_sizes_of_the_benchmark(folder):
  made = make_task(folder)
  sizes = (made.name, made.vocab_size, made.num_classes, made.max_length)
  assert sizes == ("pathfinder", 256, 2, 1024)
  assert not made.is_pair


@pytest.mark.parametrize("above", ["lra_release", "lra_release/lra_release"])
def test_folders_are_found_where_the_archive_has_them(folder, above):
  expected = numbers(make_task(folder))
  target = folder.parents[2] / "unpacked" / above
  target.mkdir(parents=True)
  (folder.parent).rename(target / "pathfinder32")
  found = pathfinder.make_task(folder.parents[2] / "unpacked")
  assert numbers(found) == expected


@pytest.mark.parametrize(
  ("level", "other"),
  [
    ("easy", "pathfinder32/curv_baseline"),
    ("inter", "pathfinder32/curv_contour_length_9"),
  ],
)
def test_each_level_has_its_folder(folder, level, other):
  with pytest.raises(errors.DataError, match=other):
    make_task(folder, level=level)
  folder.rename(folder.parents[1] / other)
  assert len(numbers(make_task(folder, level=level))) == 12


def test_images_of_other_levels_are_added_for_training(folder):
  alone = make_task(folder)
  for other in ("curv_baseline", "curv_contour_length_9"):
    shutil.copytree(folder, folder.with_name(other))
  made = make_task(folder, add_levels=["inter", "easy"])
  added = np.random.default_rng(0).permutation(12).tolist()
  expected = numbers(alone)
  assert numbers(made) == expected[:9] + added + added + expected[9:]
  assert [len(made.validation), len(made.test)] == [1, 2]


@pytest.mark.parametrize(
  ("levels", "message"),
  [
    (["easy", "simple"], "levels of easy, inter, hard, got 32 and .*'simple'"),
    (["hard"], "a level twice, or 'hard'"),
    (["easy", "easy"], "a level twice"),
  ],
)
def test_added_levels_are_checked(folder, levels, message):
  with pytest.raises(ValueError, match=message):
    make_task(folder, add_levels=levels)


def test_images_are_decoded_once_until_the_folder_changes(folder, monkeypatch):
  expected = numbers(make_task(folder))
  decode = images.png
  monkeypatch.setattr(images, "png", None)
  assert numbers(make_task(folder)) == expected
  monkeypatch.setattr(images, "png", decode)
  (folder / "metadata" / "11.npy").unlink()
  assert sorted(numbers(make_task(folder))) == list(range(11))
  changed = folder / "imgs" / "4" / "new.png"
  Image.fromarray(np.full((32, 32), 6, np.uint8)).save(changed)
  changed.replace(changed.with_name("sample_0.png"))
  os.utime(changed.parent, (1, 1))
  assert numbers(make_task(folder)).count(6) == 2


def test_a_file_rewritten_in_its_place_is_read_again(folder):
  assert numbers(make_task(folder)).count(6) == 1
  path = folder / "imgs" / "4" / "sample_0.png"
  before, times = path.parent.stat().st_mtime_ns, path.stat()
  content = images.encoded(np.full((32, 32), 6, np.uint8))
  with path.open("r+b") as file:  # the folder does not notice
    file.truncate(file.write(content))
  os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
  assert path.parent.stat().st_mtime_ns == before
  assert numbers(make_task(folder)).count(6) == 2


def test_empty_images_are_left_out_with_one_notice(folder, caplog):
  for k in (2, 5):
    (folder / "imgs" / str(k) / "sample_0.png").write_bytes(b"")
  expected = {0, 1, 3, 4, 6, 7, 8, 9, 10, 11}
  assert set(numbers(make_task(folder))) == expected
  (record,) = caplog.records
  assert "left out 2 empty image(s)" in record.getMessage()
  assert "imgs/2/sample_0.png" in record.getMessage()


@pytest.mark.parametrize(
  ("damage", "message"),
  [
    ("noise", "not a PNG image"),
    ("cut", "not a PNG image"),
    ("missing", "No such file"),
    ("small", r"expected uint8 \[32, 32\], got 16 x 16 pixels"),
    ("color", r"expected uint8 \[32, 32\], got uint8 \[32, 32, 3\]"),
  ],
)
def test_unreadable_images_are_named(folder, damage, message):
  path = folder / "imgs" / "7" / "sample_0.png"
  if damage == "noise":
    path.write_bytes(b"noise")
  elif damage == "cut":
    path.write_bytes(path.read_bytes()[:-30])
  elif damage == "missing":
    path.unlink()
  elif damage == "small":
    Image.fromarray(np.zeros((16, 16), np.uint8)).save(path)
  else:
    Image.fromarray(np.zeros((32, 32, 3), np.uint8)).save(path)
  with pytest.raises(errors.DataError, match=message) as caught:
    make_task(folder)
  assert str(path) in str(caught.value)


def test_a_pipe_among_the_images_is_refused(folder):
  path = folder / "imgs" / "7" / "sample_0.png"
  path.unlink()
  os.mkfifo(path)
  with pytest.raises(errors.DataError, match="it is a pipe, not a file"):
    make_task(folder)


def test_nothing_but_empty_images_is_an_error(folder):
  for path in folder.glob("imgs/*/*.png"):
    path.write_bytes(b"")
  with pytest.raises(errors.DataError, match="all images are empty"):
    make_task(folder)


@pytest.mark.parametrize(
  "line",
  [
    "imgs/3 sample_0.png 0",
    "imgs/3 sample_0.png 0 2 1.0",
    "\x93NUMPY",
    "imgs/3 sample\0_0.png 0 1",
    f"imgs/3 {'x' * 5000}.png 0 1",
  ],
)
def test_malformed_metadata_are_named_with_the_line(folder, line):
  path = folder / "metadata" / "3.npy"
  path.write_text(path.read_text() + line, encoding="latin-1")
  with pytest.raises(
    errors.DataError, match=r"3\.npy, line 2: expected folder"
  ) as caught:
    make_task(folder)
  assert len(str(caught.value)) < len(str(path)) + 200


def test_a_folder_without_metadata_is_named(folder):
  for path in (folder / "metadata").iterdir():
    path.unlink()
  with pytest.raises(errors.DataError, match=r"length_14: no metadata"):
    make_task(folder)


def write_npz(path, **arrays):
  images = np.arange(20, dtype=np.uint8)[:, None, None].repeat(32, 1)
  labels = np.arange(20) % 2
  path.parent.mkdir(parents=True, exist_ok=True)
  np.savez(path, **{"x": images.repeat(32, 2), "y": labels} | arrays)


@pytest.mark.parametrize(
  "place", [f"{NAME}.npz", f"pathfinder32/{NAME}.npz", "pathfinder32/my.npz"]
)
def test_npz_files_are_shuffled_and_split(tmp_path, place):
  write_npz(tmp_path / place)
  made = pathfinder.make_task(tmp_path)
  assert sorted(numbers(made)) == list(range(20)) != numbers(made)
  assert [len(made.train), len(made.validation), len(made.test)] == [16, 2, 2]


@pytest.mark.parametrize("names", [["a", "b"], ["pathfinder32_easy"]])
def test_an_npz_file_of_something_else_is_not_taken(tmp_path, names):
  for name in names:
    write_npz(tmp_path / "pathfinder32" / f"{name}.npz")
  with pytest.raises(errors.DataError, match=r"expected a single \.npz file"):
    pathfinder.make_task(tmp_path)


@pytest.mark.parametrize(
  ("arrays", "message"),
  [
    ({"x": np.zeros((20, 64, 64), np.uint8)}, r"uint8 \[20, 64, 64\]"),
    ({"x": np.zeros((20, 32, 32))}, r"float64 \[20, 32, 32\]"),
    ({"y": np.zeros(19, int)}, "expected 20 integers as labels"),
    ({"y": np.full(20, 2)}, "row 0: expected a label 0..1, got 2"),
  ],
)
def test_malformed_npz_files_are_named(tmp_path, arrays, message):
  path = tmp_path / f"{NAME}.npz"
  write_npz(path, **arrays)
  with pytest.raises(errors.DataError, match=message) as caught:
    pathfinder.make_task(tmp_path)
  assert str(path) in str(caught.value)


def test_missing_data_and_unknown_names_are_explained(tmp_path):
  for data_dir in (None, tmp_path):
    with pytest.raises(errors.DataError, match=r"lra_release\.gz.*_generator"):
      pathfinder.make_task(data_dir)
  for wrong in ({"resolution": 48}, {"level": "medium"}):
    with pytest.raises(ValueError, match="easy, inter, hard, got"):
      pathfinder.make_task(tmp_path, **wrong)


@writers.REAL
def test_sample_images_of_the_benchmark_are_read():
  made = pathfinder.make_task(pathlib.Path(os.environ["NAM_DATA_DIR"]))
  labels = np.array([row["label"] for row in made.train])
  assert len(labels) == 80
  assert 0.3 < labels.mean() < 0.7
