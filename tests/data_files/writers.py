"""Writes small data in the official formats, byte by byte where it matters."""

import gzip
import io
import json
import os
import pathlib
import random
import struct
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

from data_files.errors import DataError

REAL = pytest.mark.skipif(
  "NAM_DATA_DIR" not in os.environ, reason="NAM_DATA_DIR is not set"
)


def write(path: pathlib.Path, data: bytes | str) -> pathlib.Path:
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_bytes(data.encode() if isinstance(data, str) else data)
  return path


def tar(contents: dict[str, bytes]) -> bytes:
  stream = io.BytesIO()
  with tarfile.open(fileobj=stream, mode="w") as archive:
    for name, data in contents.items():
      member = tarfile.TarInfo(name)
      member.size = len(data)
      archive.addfile(member, io.BytesIO(data))
  return stream.getvalue()


def write_archive(
  path: pathlib.Path, contents: dict[str, bytes]
) -> pathlib.Path:
  return write(path, gzip.compress(tar(contents), 1))


def damaged_copies(data: bytes, count: int) -> Iterator[bytes]:
  """`count` truncated copies, and `count` with a single bit changed."""
  rng = random.Random(0)
  for _ in range(count):
    yield data[: rng.randrange(len(data))]
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    yield bytes(changed)


def load_damaged(
  path: pathlib.Path, count: int, load: Callable[[], Any]
) -> tuple[list[Any], int]:
  """What load() returns for damaged copies of a file, and how often it fails.

  It must fail with a DataError that names the file or its folder.
  """
  loaded, failures = [], 0
  for data in damaged_copies(path.read_bytes(), count):
    path.write_bytes(data)
    try:
      loaded.append(load())
    except DataError as error:
      assert str(path.parent) in str(error)  # noqa: PT017
      failures += 1
  return loaded, failures


def error_of(function: Callable, *arguments: Any, **settings: Any) -> str:
  """The message of the DataError that a call raises."""
  with pytest.raises(DataError) as caught:
    function(*arguments, **settings)
  return str(caught.value)


def imdb_contents() -> dict[str, bytes]:
  """Files as in aclImdb_v1.tar.gz, unordered; two reviews of each kind."""
  reviews = {
    f"aclImdb/{split}/{folder}/{number}_{rating}.txt": (
      f"{split} {folder} {number} caf\xe9".encode("latin-1")
    )
    for number in (1, 0)
    for folder, rating in (("pos", 9), ("neg", 2))
    for split in ("train", "test")
  }
  others = {
    "aclImdb/README": b"Large Movie Review Dataset",
    "aclImdb/train/unsup/0_0.txt": b"no label",
    "aclImdb/train/urls_pos.txt": b"http://example.org",
  }
  return others | reviews


def json_lines(*items: dict) -> str:
  return "".join(json.dumps(item) + "\n" for item in items)


def cifar_images(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
  """Colors, uint8 [rows 3 32 32], and labels."""
  rng = np.random.default_rng(seed)
  colors = rng.integers(0, 256, (rows, 3, 32, 32), np.uint8)
  return colors, rng.integers(0, 10, rows, np.uint8)


CIFAR_BATCHES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


def cifar_binary(colors: np.ndarray, labels: np.ndarray) -> bytes:
  planes = colors.reshape(len(colors), -1)
  return np.concatenate([labels[:, None], planes], axis=1).tobytes()


def _short(text: bytes) -> bytes:
  return b"U" + bytes([len(text)]) + text


def python2_pickle(value: dict) -> bytes:
  """Plain data and uint8 arrays in the instructions that Python 2 writes."""
  return b"\x80\x02" + _pickled(value) + b"."


def _pickled(value: object) -> bytes:
  match value:
    case dict():
      items = b"".join(_pickled(k) + _pickled(v) for k, v in value.items())
      return b"}(" + items + b"u"
    case list():
      return b"](" + b"".join(map(_pickled, value)) + b"e"
    case tuple():
      return b"(" + b"".join(map(_pickled, value)) + b"t"
    case int():
      return b"J" + struct.pack("<i", value)
    case str():
      return _short(value.encode())
    case np.ndarray():
      kind = b"cnumpy\ndtype\n" + _short(b"u1") + b"K\x00K\x01\x87R"
      state = b"(K\x03" + _short(b"|") + b"NNN" + _pickled((-1, -1))[1:-1]
      data = value.tobytes()
      return (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
        + _short(b"b")
        + b"\x87R(K\x01"
        + _pickled(value.shape)
        + (kind + state + b"K\x00tb\x89T" + struct.pack("<i", len(data)))
        + (data + b"tb")
      )
  raise TypeError(value)


def png(pixels: np.ndarray) -> bytes:
  stream = io.BytesIO()
  Image.fromarray(pixels).save(stream, "PNG")
  return stream.getvalue()


def write_prepared(
  root: pathlib.Path,
  name: str,
  features: dict[str, object],
  splits: dict[str, list[dict]],
) -> pathlib.Path:
  """A folder prepared by TFDS as array_record; images are given as pixels.

  Args:
    root: where TFDS would keep its data.
    name: the data set's name.
    features: name -> an image's shape, a number of classes, or None for text.
    splits: the examples of each split.
  """
  import tensorflow_datasets as tfds

  tfds.disable_progress_bar()
  data_set = name
  kinds = {
    feature: tfds.features.Text()
    if kind is None
    else tfds.features.ClassLabel(num_classes=kind)
    if isinstance(kind, int)
    else tfds.features.Image(shape=kind)
    for feature, kind in features.items()
  }

  def encoded(value):
    return io.BytesIO(png(value)) if isinstance(value, np.ndarray) else value

  with tfds.core.registered.skip_registration():

    class Builder(tfds.core.GeneratorBasedBuilder):
      name = data_set
      VERSION = tfds.core.Version("1.0.0")

      def _info(self):
        return tfds.core.DatasetInfo(
          builder=self,
          features=tfds.features.FeaturesDict(kinds),
          disable_shuffling=True,
        )

      def _split_generators(self, _):
        return {split: self._generate_examples(split) for split in splits}

      def _generate_examples(self, split):
        for number, example in enumerate(splits[split]):
          yield number, {k: encoded(v) for k, v in example.items()}

  builder = Builder(data_dir=root, file_format="array_record")
  builder.download_and_prepare()
  return pathlib.Path(builder.data_dir)
