"""Folders prepared by tensorflow_datasets (TFDS), such as cifar10/3.0.2.

TFDS reads their array_record files without TensorFlow. `data_files.prepare`
downloads and writes them.
"""

import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

from data_files import disk, files_read
from data_files.errors import DataError
from nam_jax.training import regular_files


def home() -> pathlib.Path:
  """Where TFDS keeps its data: $TFDS_DATA_DIR, or ~/tensorflow_datasets."""
  chosen = os.environ.get("TFDS_DATA_DIR") or "~/tensorflow_datasets"
  return pathlib.Path(os.path.expanduser(chosen))


def find(
  name: str,
  data_dir: pathlib.Path | None,
  folders: Sequence[str],
  readers: dict[str, Callable],
  prepared: tuple[str, Callable],
  advice: str,
) -> tuple[pathlib.Path, Callable]:
  """Like `disk.find`, or else a prepared folder; TFDS's own home by default.

  Args:
    name: the data, for errors.
    data_dir: where to look; None for `home`.
    folders: folders below data_dir, "" for itself.
    readers: what reads a file, by name or glob.
    prepared: TFDS's name for the data set, and the reader of its folder.
    advice: which file to get, and from where.
  """
  tfds_name, reader = prepared
  file = f"{tfds_name}-train.*-of-*"
  patterns = dict.fromkeys((file, f"*/{file}", f"*/*/{file}"), reader)
  path, reader = disk.find(
    name,
    home() if data_dir is None else data_dir,
    dict.fromkeys([*folders, tfds_name]),
    readers | patterns,
    f"Run python -m data_files.prepare {tfds_name}; or {advice}, and pass"
    " that folder as data_dir",
  )
  is_prepared = path.name.startswith(f"{tfds_name}-train.")
  return path.parent if is_prepared else path, reader


def read(
  folder: pathlib.Path, split: str, features: Sequence[str]
) -> list[list[Any]]:
  """The values of each feature over a split; images stay encoded."""
  import tensorflow_datasets as tfds

  for path in folder.glob(f"*-{split}.*"):
    files_read.note(path)
  try:
    for path in folder.glob("*.*"):
      regular_files.open_file(path).close()  # TFDS would wait for a pipe
    builder = tfds.builder_from_directory(folder)
    kinds = builder.info.features
    raw = [f for f in features if isinstance(kinds[f], tfds.features.Image)]
    source = builder.as_data_source(
      split, decoders=dict.fromkeys(raw, tfds.decode.SkipDecoding())
    )
    examples = [source[index] for index in range(len(source))]
    return [[example[name] for example in examples] for name in features]
  except NotImplementedError as error:
    raise DataError(
      f"{folder}: prepared as tfrecord, which only TensorFlow reads; convert"
      f" it with python -m data_files.prepare --convert {folder}"
    ) from error
  except Exception as error:  # TFDS documents no error for damaged files
    raise DataError(
      f"{folder}: TFDS cannot read {split}: {disk.reason(error)}"
    ) from error
