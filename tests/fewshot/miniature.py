"""Small data in the layouts of mini-ImageNet."""

import io

import numpy as np
from PIL import Image

from fewshot.data import mini_imagenet
from tests.data_files import writers

CLASSES = ["n01", "n02", "n03", "n04", "n05"]
CLASS_SPLIT = [0, 1, 0, 2, 0]
PER_CLASS = 5
SETTINGS = {"image_size": 8, "num_base_val": 1, "num_base_test": 2}
FIVE = "miniImageNet_category_split_"
PARTS = {
  "train_phase_train": (0, 1),
  "train_phase_val": (0, 1),
  "train_phase_test": (0, 1),
  "val": (2,),
  "test": (3, 4),
}


def picture(label, number, third=7, side=8):
  """An image whose pixels encode the class and the number."""
  return np.full((side, side, 3), [label, number, third], np.uint8)


def encoded(pixels, kind="PNG"):
  stream = io.BytesIO()
  Image.fromarray(pixels).save(stream, kind, lossless=True)
  return stream.getvalue()


def write_blob(folder, **changes):
  """Writes the images, not sorted by class."""
  label = np.tile(np.arange(5, dtype=np.uint8), PER_CLASS)
  files = [
    encoded(picture(k, i // 5), ("PNG", "WEBP")[i % 2])
    for i, k in enumerate(label)
  ]
  arrays = {
    "blob": np.frombuffer(b"".join(files), np.uint8),
    "offsets": np.cumsum([0, *map(len, files)]),
    "label": label,
    "split": np.array(CLASS_SPLIT, np.uint8)[label],
    "classes": np.array(CLASSES),
    "class_split": np.array(CLASS_SPLIT, np.uint8),
  }
  arrays |= changes
  path = folder / "miniimagenet_84.npz"
  np.savez(path, **{k: v for k, v in arrays.items() if v is not None})
  return path


def write_tables(folder, place):
  for split, name in enumerate(("train", "val", "test")):
    lines = ["filename,label"]
    for label, class_name in enumerate(CLASSES):
      for i in range(PER_CLASS if CLASS_SPLIT[label] == split else 0):
        file = f"{class_name}_{i}.png"
        lines.append(f"{file},{class_name}")
        target = place.format(name=class_name, split=name)
        writers.write(folder / target / file, encoded(picture(label, i)))
    writers.write(folder / f"{name}.csv", "\r\n".join(lines) + "\r\n")


def write_five(folder):
  """Writes pickles; three images per class, whose third color is the split."""
  for split, (part, labels) in enumerate(PARTS.items()):
    images = [picture(k, i, split) for k in labels for i in range(3)]
    pickled = writers.python2_pickle(
      {
        "data": np.stack(images),
        "labels": [k for k in labels for _ in range(3)],
      }
    )
    writers.write(folder / f"{FIVE}{part}.pickle", pickled)


def write_three(folder):
  for split, part in enumerate(("train", "val", "test")):
    labels = [k for k in range(5) if CLASS_SPLIT[k] == split]
    images = [picture(k, i) for i in range(PER_CLASS) for k in labels]
    rows = {
      CLASSES[k]: list(range(n, len(images), len(labels)))
      for n, k in enumerate(labels)
    }
    pickled = {"image_data": np.stack(images), "class_dict": rows}
    path = folder / f"mini-imagenet-cache-{part}.pkl"
    writers.write(path, writers.python2_pickle(pickled))


def assert_is_the_small_set(data):
  assert data.base_train.names == ("n01", "n03", "n05")
  assert (data.val.names, data.test.names) == (("n02",), ("n04",))
  counts = {n: set(s.counts()) for n, s in data.splits().items()}
  assert list(counts.values()) == [{2}, {1}, {2}, {5}, {5}]
  seen = []
  for split in data.splits().values():
    assert split.data.shape[1:] == (8, 8, 3)
    for image, label in zip(split.data, split.labels, strict=True):
      number = int(image[0, 0, 1])
      assert split.names[label] == CLASSES[image[0, 0, 0]]
      assert (image == picture(image[0, 0, 0], number)).all()
      seen.append((split.names[label], number))
  assert sorted(seen) == [(c, i) for c in CLASSES for i in range(PER_CLASS)]


def error_of(folder, **settings):
  """The message with which reading this mini-ImageNet fails."""
  return writers.error_of(mini_imagenet.load, folder, **(SETTINGS | settings))
