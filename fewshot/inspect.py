"""Shows data: python -m fewshot.inspect omniglot --data_dir DIR.

For your own images, python -m fewshot.inspect folder --data_dir IMAGES, it also
lists all files that are skipped or cannot be read, and says what a run with
configs/fewshot/folder.py will do.
"""

import os
import pathlib

import numpy as np

from command_line import tool
from configs.fewshot import folder as folder_config
from data_files.errors import DataError
from fewshot import config as config_lib
from fewshot import plan
from fewshot.data import registry
from fewshot.data import survey as survey_lib
from nam_jax import training


def main(arguments: list[str] | None = None) -> None:
  """Runs the command line."""
  parser = tool.make_parser(
    __doc__,
    "python -m fewshot.inspect",
    f"sources: {', '.join(registry.SOURCES)}",
  )
  parser.add_argument("source", help="one of the sources below")
  parser.add_argument("--data_dir", help="folder with the source's files")
  parser.add_argument(
    "--image_size", type=int, help="side of the images (default: the source's)"
  )
  tool.run(parser, _show, arguments)


def _show(options) -> None:
  size = options.image_size
  settings = {} if size is None else {"image_size": size}
  if options.source == "folder" and options.data_dir:
    _show_files(pathlib.Path(os.path.expanduser(options.data_dir)))
  data = registry.load(options.source, options.data_dir, **settings)
  shape = data.test.data.shape[1:]
  print(f"{data.name}: {' x '.join(map(str, shape))} {data.test.data.dtype}")
  print(f"{'':12}{'classes':>8}{'images':>8}  per class: min, median, max")
  for name, split in data.splits().items():
    counts = split.counts()
    print(
      f"{name:12}{len(split.names):8}{len(split.data):8}  {counts.min()},"
      f" {np.median(counts):g}, {counts.max()}"
    )
  for name in ("base_train", "val", "test"):
    names = getattr(data, name).names
    more = f", ... ({len(names)})" if len(names) > 5 else ""
    # Whatever is in a name, the terminal gets plain characters.
    print(f"{name}: {', '.join(map(ascii, names[:5]))}{more}")
  if options.source == "folder":
    config = training.from_config_dict(
      folder_config.get_config(), config_lib.FewShotConfig
    )
    print("a run with configs/fewshot/folder.py:")
    print(plan.described(plan.fitted(config, data), data))


def _show_files(root) -> None:
  """Lists what is not read; unreadable images end the program."""
  if not root.is_dir():
    raise DataError(f"data_dir {root}: no such folder")
  found = survey_lib.survey(root)
  print(f"{sum(found.counts.values())} images in {len(found.counts)} folders")
  for what, lines in (
    ("are skipped", found.skipped),
    ("cannot be read", found.unreadable),
  ):
    if lines:
      print(f"{len(lines)} files {what}:", *lines, sep="\n  ")
  if found.unreadable:
    raise DataError(
      f"{len(found.unreadable)} images cannot be read: replace or delete them"
    )


if __name__ == "__main__":
  main()
