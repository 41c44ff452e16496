"""Downloads data sets and prepares them for our readers, with TFDS.

  python -m data_files.prepare imdb_reviews cifar10 cifar100 omniglot

They go where TFDS keeps its data, which is where the readers look without
--data_dir. Preparing needs TensorFlow; reading does not.
"""

import json
import pathlib

from command_line import tool
from data_files import disk, tfds_source
from data_files.errors import DataError
from nam_jax import spelling
from nam_jax.training import whole_files

NAMES = ("imdb_reviews", "cifar10", "cifar100", "omniglot")
_FORMAT = "array_record"


def main(arguments: list[str] | None = None) -> None:
  """Runs the command line."""
  parser = tool.make_parser(__doc__, "python -m data_files.prepare")
  parser.add_argument("names", nargs="*", metavar="NAME")
  parser.add_argument(
    "--data_dir", help="folder for the data sets", default=tfds_source.home()
  )
  parser.add_argument(
    "--convert",
    metavar="FOLDER",
    type=pathlib.Path,
    help="add array_record files to a folder prepared as tfrecord",
  )
  tool.run(parser, _prepare, arguments)


def _prepare(options) -> None:
  if not options.names and not options.convert:
    raise DataError(f"name data sets: {', '.join(NAMES)}")
  for name in options.names:
    if name not in NAMES:
      raise DataError(spelling.unknown("data set", name, NAMES))
  try:
    import tensorflow  # noqa: F401
    import tensorflow_datasets as tfds
  except ImportError as error:
    raise DataError(
      "preparing data needs TensorFlow: pip install 'nam-jax[tf]'"
    ) from error

  if options.convert:
    _convert(options.convert)
    print(f"converted {options.convert}")
  for name in options.names:
    builder = tfds.builder(name, data_dir=options.data_dir)
    builder.download_and_prepare(file_format=_FORMAT)
    print(f"{name}: {builder.data_dir}")


def _convert(folder: pathlib.Path) -> None:
  """Also writes the records of .tfrecord files to .array_record files."""
  import tensorflow as tf
  from tensorflow_datasets.core import file_adapters

  info = json.loads(disk.read(folder / "dataset_info.json"))
  for path in sorted(folder.glob("*.tfrecord-*")):
    records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    file_adapters.ArrayRecordFileAdapter.write_examples(
      path.with_name(path.name.replace(".tfrecord-", f".{_FORMAT}-")),
      enumerate(records),
    )
  info["alternativeFileFormats"] = [_FORMAT]
  whole_files.write_json(folder / "dataset_info.json", info)


if __name__ == "__main__":
  main()
