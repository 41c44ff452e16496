"""Writes small data in the official formats, byte by byte where it matters."""

import gzip
import io
import json
import pathlib
import random
import struct
import tarfile
from collections.abc import Iterator

import numpy as np
from PIL import Image


def write(path: pathlib.Path, data: bytes | str) -> pathlib.Path:
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_bytes(data.encode() if isinstance(data, str) else data)
  return path


def write_folder(folder: pathlib.Path, contents: dict[str, bytes]) -> None:
  for name, data in contents.items():
    write(folder / name, data)


def tar(contents: dict[str, bytes]) -> bytes:
  stream = io.BytesIO()
  with tarfile.open(fileobj=stream, mode="w") as archive:
    for name, data in contents.items():
      member = tarfile.TarInfo(name)
      member.size = len(data)
      archive.addfile(member, io.BytesIO(data))
  return stream.getvalue()


def write_archive(path: pathlib.Path, contents: dict[str, bytes]) -> None:
  write(path, gzip.compress(tar(contents), 1))


def damaged_copies(data: bytes, count: int) -> Iterator[bytes]:
  """Truncations and changes of single bits, `count` of each."""
  rng = random.Random(0)
  for _ in range(count):
    yield data[: rng.randrange(len(data))]
    changed = bytearray(data)
    changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    yield bytes(changed)


def imdb_contents() -> dict[str, bytes]:
  """Files as in aclImdb_v1.tar.gz, in no order; two reviews of a kind."""
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


def cifar_python(colors: np.ndarray, labels: np.ndarray) -> bytes:
  """The instructions of the official batches: protocol 2, by Python 2."""
  data = colors.tobytes()
  rows, columns = len(colors), colors[0].size
  return b"".join(
    [
      b"\x80\x02}q\x01(",
      _short(b"batch_label"),
      _short(b"a small batch"),
      _short(b"labels") + b"]q\x05(",
      b"".join(b"K" + bytes([label]) for label in labels.tolist()),
      b"e" + _short(b"data"),
      b"cnumpy.core.multiarray\n_reconstruct\nq\x07cnumpy\nndarray\nq\x08",
      b"K\x00\x85" + _short(b"b") + b"\x87Rq\x0a",
      b"(K\x01M" + struct.pack("<H", rows) + b"M" + struct.pack("<H", columns),
      b"\x86cnumpy\ndtype\nq\x0b" + _short(b"u1") + b"K\x00K\x01\x87Rq\x0d",
      b"(K\x03"
      + _short(b"|")
      + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb",
      b"\x89T" + struct.pack("<i", len(data)) + data + b"tb",
      _short(b"filenames") + b"]q\x11(",
      b"".join(_short(b"a_%d.png" % row) for row in range(rows)) + b"eu.",
    ]
  )


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


def example(**features: bytes | int) -> bytes:
  """A tf.train.Example with one value per feature."""
  entries = b""
  for name, value in features.items():
    if isinstance(value, bytes):
      feature = _field(1, _field(1, value))
    else:
      feature = _field(3, _field(1, _varint(value)))
    entries += _field(1, _field(1, name.encode()) + _field(2, feature))
  return _field(1, entries)


def _field(number: int, data: bytes) -> bytes:
  return _varint(number << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
  low, high = value & 127, value >> 7
  return bytes([low | 128]) + _varint(high) if high else bytes([low])


def tfrecord(records: list[bytes]) -> bytes:
  framed = b""
  for record in records:
    length = struct.pack("<Q", len(record))
    framed += length + _checksum(length) + record + _checksum(record)
  return framed


def _checksum(data: bytes) -> bytes:
  """Masked CRC-32C, a bit at a time."""
  crc = 0xFFFFFFFF
  for byte in data:
    crc ^= byte
    for _ in range(8):
      crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
  crc ^= 0xFFFFFFFF
  return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) % (1 << 32))


def write_prepared(
  folder: pathlib.Path,
  name: str,
  splits: dict[str, list[list[bytes]]],
  kind: str = "tfrecord",
) -> None:
  """A prepared folder; a split is a list of files, a file a list of records."""
  infos = []
  for split, shards in splits.items():
    for number, records in enumerate(shards):
      file = f"{name}-{split}.{kind}-{number:05}-of-{len(shards):05}"
      if kind == "tfrecord":
        write(folder / file, tfrecord(records))
      else:
        write_array_record(folder / file, records)
    lengths = [str(len(records)) for records in shards]
    infos.append({"name": split, "shardLengths": lengths})
  write(folder / "dataset_info.json", json.dumps({"splits": infos}))


def write_array_record(path: pathlib.Path, records: list[bytes]) -> None:
  from array_record.python import array_record_module

  path.parent.mkdir(parents=True, exist_ok=True)
  writer = array_record_module.ArrayRecordWriter(str(path), "group_size:1")
  for record in records:
    writer.write(record)
  writer.close()
