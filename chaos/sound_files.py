"""Small sound data files in every format that is read."""

import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from PIL import Image

from fewshot import backbones, heads, network
from fewshot.classifier import FewShotClassifier
from fewshot.data import cifar_classes
from lra_tasks import listops_generator, listops_trees, pathfinder_generator
from nam_jax.training import whole_files

_WORDS = ("good", "bad", "film", "caf\xe9", "paper")
# How the images of a folder are stored, in turn.
_KINDS = ("png", "jpeg", "webp", "bmp", "gif", "tiff", "ppm")


def _rng():
  return np.random.default_rng(0)


def _save(path: Path, content: bytes) -> None:
  path.parent.mkdir(parents=True, exist_ok=True)
  whole_files.write_bytes(path, content)


def _tar(contents: Mapping[str, bytes]) -> bytes:
  stream = io.BytesIO()
  with tarfile.open(fileobj=stream, mode="w") as archive:
    for name, data in contents.items():
      member = tarfile.TarInfo(name)
      member.size = len(data)
      archive.addfile(member, io.BytesIO(data))
  return gzip.compress(stream.getvalue(), 1)


def _zip(contents: Mapping[str, bytes]) -> bytes:
  stream = io.BytesIO()
  with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, data in contents.items():
      archive.writestr(name, data)
  return stream.getvalue()


def _encoded(pixels: np.ndarray, kind: str) -> bytes:
  stream = io.BytesIO()
  Image.fromarray(pixels).save(stream, kind)
  return stream.getvalue()


def _pictures(count: int, kinds: tuple[str, ...]) -> list[tuple[str, bytes]]:
  """Kind and content of images, 10 x 10 pixels in color."""
  pixels = _rng().integers(0, 256, (count, 10, 10, 3), np.uint8)
  chosen = [kinds[i % len(kinds)] for i in range(count)]
  return [(k, _encoded(p, k)) for k, p in zip(chosen, pixels, strict=True)]


def _texts(count: int) -> list[str]:
  return [" ".join(_rng().permutation(_WORDS)) + str(i) for i in range(count)]


def listops(folder: Path) -> None:
  """The benchmark's three files."""
  settings = listops_trees.Settings(
    num_train=12, num_validation=4, num_test=4, min_length=5, max_length=60
  )
  listops_generator.write(folder, listops_trees.generate(settings))


def reviews_archive(folder: Path) -> None:
  """aclImdb_v1.tar.gz."""
  contents = {
    f"aclImdb/{split}/{kind}/{i}_5.txt": f"{split} {text}".encode("latin-1")
    for split in ("train", "test")
    for kind in ("neg", "pos")
    for i, text in enumerate(_texts(3))
  }
  _save(folder / "aclImdb_v1.tar.gz", _tar(contents))


def _json_lines(path: Path, items: list[dict]) -> None:
  pack = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
  text = "".join(json.dumps(item) + "\n" for item in items)
  _save(path, pack(text.encode()))


def reviews_lines(folder: Path, suffix: str) -> None:
  """imdb_train.jsonl and imdb_test.jsonl, maybe packed."""
  items = [{"text": t, "label": i % 2} for i, t in enumerate(_texts(8))]
  for split in ("train", "test"):
    _json_lines(folder / f"imdb_{split}.jsonl{suffix}", items)


def retrieval(folder: Path) -> None:
  """The benchmark's three files."""
  for split in ("train", "eval", "test"):
    lines = [
      f"{i % 2}.0\tP{i}\tQ{i}\t{text}\t{split}"
      for i, text in enumerate(_texts(4))
    ]
    _save(
      folder / f"new_aan_pairs.{split}.tsv", "\n".join(lines).encode("utf-8")
    )


def retrieval_pairs(folder: Path) -> None:
  """papers.jsonl.gz, and three files of pairs."""
  items = [{"id": f"P{i}", "text": t} for i, t in enumerate(_texts(4))]
  _json_lines(folder / "papers.jsonl.gz", items)
  for split in ("train", "val", "test"):
    lines = ["label\tciting\tcandidate", "1\tP0\tP1", "0\tP2\tP3"]
    _save(folder / f"pairs_{split}.tsv", "\n".join(lines).encode())


def _cifar(count: int, labels: np.ndarray) -> bytes:
  """Records of some bytes of labels [count n], then three planes."""
  planes = _rng().integers(0, 4, (count, 3 * 32 * 32), np.uint8)
  return np.concatenate([labels.astype(np.uint8), planes], axis=1).tobytes()


def cifar10(folder: Path) -> None:
  """cifar-10-binary.tar.gz."""
  names = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]
  labels = np.arange(3)[:, None]
  contents = {f"cifar/{name}.bin": _cifar(3, labels) for name in names}
  _save(folder / "cifar-10-binary.tar.gz", _tar(contents))


def cifar10_gray(folder: Path) -> None:
  """cifar10_gray.npz."""
  pixels = _rng().integers(0, 256, (10, 32, 32), np.uint8)
  arrays = {"x_train": pixels, "y_train": np.arange(10)}
  arrays |= {"x_test": pixels[:4], "y_test": np.arange(4)}
  whole_files.write_npz(folder / "cifar10_gray.npz", arrays)


def cifar100(folder: Path) -> None:
  """cifar-100-binary.tar.gz, with two images of each class."""
  fine = np.tile(np.arange(len(cifar_classes.FINE)), 2)
  labels = np.stack([fine // 5, fine], axis=1)
  contents = {
    f"cifar/{name}.bin": _cifar(len(fine), labels) for name in ("train", "test")
  }
  _save(folder / "cifar-100-binary.tar.gz", _tar(contents))


def pathfinder(folder: Path) -> None:
  """The benchmark's folder of images."""
  pathfinder_generator.write(folder, resolution=32, level="hard", count=10)


def pathfinder_npz(folder: Path) -> None:
  """pathfinder32_hard.npz."""
  pixels = _rng().integers(0, 256, (10, 32, 32), np.uint8)
  arrays = {"x": pixels, "y": np.arange(10) % 2}
  whole_files.write_npz(folder / "pathfinder32_hard.npz", arrays)


def image_folder(folder: Path) -> None:
  """A folder of images for each class, and splits.csv."""
  lines = ["class,split"]
  for i, (kind, content) in enumerate(_pictures(15, _KINDS)):
    _save(folder / f"class{i % 5}" / f"{i}.{kind}", content)
  for i, split in enumerate(("base", "base", "base", "val", "novel")):
    lines.append(f"class{i},{split}")
  _save(folder / "splits.csv", "\n".join(lines).encode())


def features(folder: Path) -> None:
  """features.npz."""
  arrays = {
    "features": _rng().normal(size=(20, 4)).astype(np.float32),
    "labels": np.repeat(["a", "b", "c", "d"], 5),
    "split": np.array(["base", "base", "val", "novel"]),
  }
  whole_files.write_npz(folder / "features.npz", arrays)


def mini_imagenet(folder: Path) -> None:
  """miniimagenet_84.npz."""
  files = [content for _, content in _pictures(20, ("png", "webp"))]
  label = np.arange(20) % 5
  class_split = np.array([0, 0, 0, 1, 2])
  arrays = {
    "blob": np.frombuffer(b"".join(files), np.uint8),
    "offsets": np.cumsum([0, *map(len, files)]),
    "label": label,
    "split": class_split[label],
    "classes": np.array([f"n{i}" for i in range(5)]),
    "class_split": class_split,
  }
  whole_files.write_npz(folder / "miniimagenet_84.npz", arrays)


def mini_imagenet_tables(folder: Path) -> None:
  """train.csv, val.csv and test.csv, with images."""
  lines = {split: ["filename,label"] for split in ("train", "val", "test")}
  for i, (kind, content) in enumerate(_pictures(20, ("png", "jpeg"))):
    label, name = i % 5, f"{i}.{kind}"
    split = ("train", "train", "train", "val", "test")[label]
    lines[split].append(f"{name},n{label}")
    _save(folder / "images" / name, content)
  for split, rows in lines.items():
    _save(folder / f"{split}.csv", "\r\n".join(rows).encode())


def omniglot(folder: Path) -> None:
  """images_background.zip and images_evaluation.zip."""
  for part, characters in (("background", 4), ("evaluation", 2)):
    contents = {}
    for i in range(characters):
      for j, (_, content) in enumerate(_pictures(4, ("png",))):
        name = f"images_{part}/{part}/character{i:02}/{i}_{j}.png"
        contents[name] = content
    _save(folder / f"images_{part}.zip", _zip(contents))


def omniglot_npz(folder: Path) -> None:
  """omniglot.npz."""
  arrays = {}
  for part, characters in (("background", 4), ("evaluation", 2)):
    shape = (characters, 4, 28, 28)
    pixels = _rng().integers(0, 2, shape, np.uint8) * 255
    arrays[f"images_{part}_28"] = pixels.astype(np.uint8)
    names = [f"{part}/character{i}" for i in range(characters)]
    arrays[f"images_{part}_names"] = np.array(names)
  whole_files.write_npz(folder / "omniglot.npz", arrays)


def classifier(folder: Path) -> None:
  """classifier.npz, with random weights."""
  key, pixels = jax.random.key(0), jnp.zeros((1, 8, 8, 1), jnp.uint8)
  base = network.BaseNetwork(backbones.make_backbone("conv", widths=(2,)), 3)
  variables = base.init(key, pixels)
  width = variables["params"]["base"].shape[1]
  episodes = heads.EpisodeNetwork(heads.make_head("nam", accumulate="sum"), 3)
  support, mask = jnp.ones((1, 1, width)), jnp.ones((1, 1), bool)
  shown = jnp.ones(3, bool)
  params = episodes.init(key, support, mask, support[0], shown)["params"]
  spec = {
    "backbone": {"name": "conv", "widths": [2]},
    "head": {"kind": "nam", "accumulate": "sum"},
    "input_shape": [8, 8, 1],
    "names": ["a", "b", "c"],
    "novel_bias": 0.5,
  }
  made = FewShotClassifier(spec, variables, params)
  made.save(folder / "classifier.npz")
