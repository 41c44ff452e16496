"""What there is in a folder of images, read or not."""

import pathlib
from typing import NamedTuple

from data_files import disk, images
from data_files.errors import DataError
from fewshot import preprocess


class Survey(NamedTuple):
  """The files below a folder."""

  counts: dict[str, int]  # folder with images -> how many can be read
  skipped: list[str]  # files that are no images by their name, and why
  unreadable: list[str]  # images that cannot be read, and why


def survey(root: pathlib.Path) -> Survey:
  """Opens every file below root that is an image by its name."""
  counts, skipped, unreadable = {}, [], []
  for path in sorted(root.rglob("*")):
    if path.is_dir():
      continue
    place = path.relative_to(root)
    if any(part[0] in "._" for part in place.parent.parts):
      skipped.append(f"{_shown(place)}: its folder is hidden")
    elif len(place.parts) == 1:
      if place.name != "splits.csv":
        skipped.append(f"{_shown(place)}: it is in no folder of a class")
    elif not preprocess.is_image(path):
      skipped.append(f"{_shown(place)}: its name is not that of an image")
    else:
      folder = place.parent.as_posix()
      counts.setdefault(folder, 0)
      try:
        images.square(str(place), disk.read(path), 8)
        counts[folder] += 1
      except DataError as error:
        unreadable.append(_shown(str(error).removeprefix(f"{root}/")))
  return Survey(counts, skipped, unreadable)


def _shown(text):
  """Printable, whatever is in the name of a file."""
  return ascii(str(text))[1:-1]
