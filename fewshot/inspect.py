"""Shows data: python -m fewshot.inspect omniglot --data_dir DIR."""

import argparse

import numpy as np

from data_files.errors import DataError
from fewshot.data import registry


def main(arguments: list[str] | None = None) -> None:
  """Prints what the arguments ask for; wrong ones end with one line."""
  parser = argparse.ArgumentParser(
    prog="python -m fewshot.inspect",
    description="Prints classes and images of each split.",
    epilog=f"sources: {', '.join(registry.SOURCES)}",
  )
  parser.add_argument("source", help="one of the sources below")
  parser.add_argument("--data_dir", help="folder with the source's files")
  parser.add_argument(
    "--image_size", type=int, help="side of the images (default: the source's)"
  )
  options = parser.parse_args(arguments)
  settings = {}
  if options.image_size is not None:
    settings["image_size"] = options.image_size
  try:
    data = registry.load(options.source, options.data_dir, **settings)
  except DataError as error:
    parser.exit(2, f"error: {error}\n")
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
    # Whatever a name holds, the terminal gets plain characters.
    print(f"{name}: {', '.join(map(ascii, names[:5]))}{more}")


if __name__ == "__main__":
  main()
