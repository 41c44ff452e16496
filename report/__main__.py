"""Makes one HTML page about all runs in a folder.

  python -m report runs
  python -m report runs/table --output=table.html

The page has the numbers in every results.json next to the paper's, learning
curves from every metrics.jsonl, the runs' own pictures, versions, configs, and
the commands that repeat the runs. It is one file that needs no network. Runs
without results.json are shown as not finished. Files that cannot be used are
listed on the page and in the terminal, and do not stop the rest.
"""

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

from command_line import tool
from nam_jax.training import whole_files
from report import find, html, page, pictures
from report.run import plural


def main(argv: Sequence[str]) -> None:
  """Writes the page that argv asks for."""
  parser = tool.make_parser(__doc__, "python -m report")
  parser.add_argument("folder", type=Path, help="folder with runs at any depth")
  parser.add_argument(
    "--output",
    type=Path,
    help="file for the page (default: report.html in the folder)",
  )
  options = parser.parse_args(argv)
  folder, output = options.folder, options.output
  output = output or folder / "report.html"
  if not folder.is_dir():
    parser.error(f"{folder} is not a folder; give one with runs in it")
  found = find.find(folder)
  for problem in found.problems:
    print(f"warning: {problem}", file=sys.stderr)
  if not found.runs and not found.problems:
    parser.error(
      f"{folder} holds no run: no results.json or metrics.jsonl; make one with"
      " make train"
    )
  if pictures.drawing() is None:
    print(pictures.NO_MATPLOTLIB, file=sys.stderr)
  text = page.build(folder, found, datetime.datetime.now(datetime.UTC))
  try:
    if output.is_dir():
      raise IsADirectoryError(21, "it is a folder")
    whole_files.write_text(output, text)
  except OSError as error:
    parser.error(f"cannot write {output}: {error.strerror}")
  count = plural(len(found.runs), "run")
  size = f"{count}, {len(text) / 1e6:.1f} MB"
  print(html.printable(f"{output}: {size}"))


if __name__ == "__main__":
  main(sys.argv[1:])
