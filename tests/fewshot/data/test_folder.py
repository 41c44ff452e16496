"""Folders of images, divided at random, by a table, by folders."""

import functools

import numpy as np
import pytest

from fewshot import inspect
from fewshot.data import folder
from tests.data_files import writers

CLASSES = [f"class {n}" for n in range(10)]
SETTINGS = {
  "image_size": 8,
  "min_images": 4,
  "num_base_val": 1,
  "num_base_test": 1,
}


@pytest.fixture
def root(tmp_path):
  """Ten classes of four images, whose pixels encode class and number."""
  for label, name in enumerate(CLASSES):
    for i in range(4):
      pixels = np.full((9 + i, 12, 3), [label, i, 0], np.uint8)
      suffix = ("png", "PNG")[i % 2]
      path = tmp_path / "data" / name / f"{i}.{suffix}"
      writers.write(path, writers.png(pixels))
  writers.write(tmp_path / "data" / "notes.txt", "not a class")
  writers.write(tmp_path / "data" / ".hidden" / "a.png", "not a class")
  writers.write(tmp_path / "data" / CLASSES[0] / "notes.txt", "not an image")
  return tmp_path / "data"


def write_table(root, splits):
  lines = [f"{name},{split}" for name, split in splits.items()]
  writers.write(root / "splits.csv", "\n".join(["class,split", *lines]))


def load(root, **settings):
  return folder.load(root, **(SETTINGS | settings))


error_of = functools.partial(writers.error_of, load)


def assert_complete(data, names):
  seen = []
  for split in data.splits().values():
    assert split.data.shape[1:] == (8, 8, 3)
    for image, label in zip(split.data, split.labels, strict=True):
      assert (image == image[0, 0]).all()
      assert split.names[label] == CLASSES[image[0, 0, 0]]
      seen.append((split.names[label], int(image[0, 0, 1])))
  assert sorted(seen) == [(name, i) for name in names for i in range(4)]


def test_classes_are_divided_at_random(root):
  data = load(root)
  assert [len(s.names) for s in data.splits().values()] == [6, 6, 6, 2, 2]
  assert_complete(data, CLASSES)
  assert [set(s.counts()) for s in data.splits().values()][:3] == [
    {2},
    {1},
    {1},
  ]
  assert load(root).test.names == data.test.names
  assert len({load(root, seed=seed).test.names for seed in range(5)}) > 1
  shares = load(root, val_share=0.3, novel_share=0.1)
  assert (len(shares.val.names), len(shares.test.names)) == (3, 1)


def test_a_table_divides_the_classes(root):
  kinds = ["novel", "base", "val", *["base"] * 7]
  write_table(root, dict(zip(CLASSES, kinds, strict=True)))
  data = load(root)
  assert (data.val.names, data.test.names) == (("class 2",), ("class 0",))
  assert_complete(data, CLASSES)


def test_folders_divide_the_classes(root):
  for name, split in zip(
    CLASSES[:4], ("base", "val", "novel", "base"), strict=True
  ):
    (root / split).mkdir(exist_ok=True)
    (root / name).rename(root / split / name)
  for name in CLASSES[4:]:
    for path in (root / name).iterdir():
      path.unlink()
    (root / name).rmdir()
  data = load(root)
  assert data.base_train.names == ("class 0", "class 3")
  assert (data.val.names, data.test.names) == (("class 1",), ("class 2",))
  assert_complete(data, CLASSES[:4])
  assert "leave out val_share" in error_of(root, val_share=0.1)
  (root / "base" / CLASSES[1]).mkdir()
  for path in (root / "val" / CLASSES[1]).iterdir():
    writers.write(root / "base" / CLASSES[1] / path.name, path.read_bytes())
  assert "class 'class 1' is in" in error_of(root)


def test_a_changed_image_is_read_again(root):
  assert not (load(root).test.data == 99).any()
  for path in root.glob("*/0.png"):
    writers.write(path, writers.png(np.full((8, 8, 3), 99, np.uint8)))
  assert (load(root).test.data == 99).any()


@pytest.mark.parametrize(
  ("changes", "complaint"),
  [
    ({"class 0": None}, "splits.csv: no line for the class 'class 0'"),
    ({"other": "base"}, "splits.csv, line 12: class 'other' has no folder"),
    ({"class 1": "train"}, "line 3: expected base, val or novel, got 'train'"),
    ({"class 9": "base"}, "no class in novel"),
    ({"class 9": ""}, "line 11: expected class,split, got"),
  ],
)
def test_a_wrong_table_is_named(root, changes, complaint):
  kinds = dict.fromkeys(CLASSES, "base")
  kinds |= {"class 8": "val", "class 9": "novel"} | changes
  write_table(root, {k: v for k, v in kinds.items() if v is not None})
  assert complaint in error_of(root)


def test_a_class_named_twice_is_an_error(root):
  write_table(root, dict.fromkeys(CLASSES, "base"))
  with (root / "splits.csv").open("a") as file:
    file.write("\nclass 3,val")
  assert "line 12: class 'class 3' is listed twice" in error_of(root)


def test_an_unreadable_image_is_named(root):
  bad = writers.write(root / CLASSES[3] / "2.png", b"no image")
  assert f"{bad}: not a readable image" in error_of(root)
  writers.write(bad, b"")
  assert f"{bad}: the file is empty" in error_of(root)


def test_a_class_with_too_few_images_is_named(root):
  (root / CLASSES[3] / "2.png").unlink()
  message = error_of(root)
  assert f"{root / CLASSES[3]}: class 'class 3' has 3 images" in message
  assert "needs 4 or more (--config.data_kwargs.min_images)" in message
  few = error_of(root, min_images=1, num_base_val=3)
  assert "images, and 3 + 1 are to be held out" in few


def test_too_few_classes_and_wrong_shares_are_named(root, tmp_path):
  assert "val_share between 0 and 1" in error_of(root, val_share=1.5)
  assert "10 classes are too few for 5" in error_of(
    root, val_share=0.5, novel_share=0.5
  )
  (tmp_path / "empty" / "only").mkdir(parents=True)
  message = error_of(tmp_path / "empty")
  assert "1 folders with images; few-shot learning needs 2" in message
  assert "--data_dir" in message
  assert "folder needs data_dir" in error_of(None)


def small(root, classes, images):
  """The first classes and images alone."""
  for label, name in enumerate(CLASSES):
    for path in (root / name).iterdir():
      if label >= classes or path.stem not in map(str, range(images)):
        path.unlink()
    if label >= classes:
      (root / name).rmdir()
  return root


def test_two_classes_of_two_images_are_enough(root):
  data = folder.load(small(root, 2, 2), image_size=8)
  assert data.has_stand_ins
  assert data.base_test is data.base_train
  assert [len(s.names) for s in data.splits().values()] == [2] * 5
  assert data.val.names == ("class 0, turned 90", "class 1, turned 90")
  turned = np.rot90(data.base_train.data[0], 2)
  np.testing.assert_array_equal(data.test.data[0], turned)


def test_held_out_images_follow_from_the_smallest_class(root):
  data = folder.load(root, image_size=8)
  assert not data.has_stand_ins
  assert [set(s.counts()) for s in data.splits().values()] == [
    *({2}, {1}, {1}),
    *({4}, {4}),
  ]


def test_a_folder_with_an_odd_name_is_refused(root):
  (root / "a\nb").mkdir()
  assert r"a folder has the odd name 'a\nb'" in error_of(root)


def test_all_files_that_are_not_read_are_listed(root, capsys):
  bad = writers.write(root / CLASSES[3] / "2.png", b"no image")
  writers.write(root / CLASSES[5] / "0.png", b"")
  with pytest.raises(SystemExit):
    inspect.main(["folder", f"--data_dir={root}", "--image_size=8"])
  printed = capsys.readouterr()
  assert "38 images in 10 folders\n3 files are skipped:" in printed.out
  assert "notes.txt: it is in no folder of a class" in printed.out
  assert ".hidden/a.png: its folder is hidden" in printed.out
  assert "class 0/notes.txt: its name is not that of an image" in printed.out
  assert "2 files cannot be read:\n  class 3/2.png: not a" in printed.out
  assert "class 5/0.png: the file is empty" in printed.out
  assert printed.err == (
    "error: 2 images cannot be read: replace or delete them\n"
  )
  assert f"{bad}: not a readable" in error_of(root)


def test_what_a_run_will_do_is_said(root, capsys):
  inspect.main(["folder", f"--data_dir={small(root, 3, 3)}", "--image_size=8"])
  printed = capsys.readouterr().out
  assert "3 base classes with 3 to 3 training images" in printed
  assert "turned base classes, since 8 classes are needed" in printed
  assert "base classes are tested with training images" in printed
  assert (
    "episodes of 2 new classes with 1 and 2 examples each and 1 queries"
    in (printed)
  )
