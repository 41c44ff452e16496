"""Shows data: python -m fewshot.inspect omniglot --data_dir DIR."""

import numpy as np

from command_line import tool
from fewshot.data import registry


def main(arguments: list[str] | None = None) -> None:
  """Runs the command line."""
  parser = tool.make_parser(
    "Prints classes and images of each split.",
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


if __name__ == "__main__":
  main()
