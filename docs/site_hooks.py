"""Hooks of mkdocs: the README as home page, notebooks, links to the sources."""

import re
from pathlib import Path

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "https://github.com/nam-jax/nam-jax/blob/main/"
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^()\s]+)")


@event_priority(100)  # before mkdocs-jupyter looks for notebooks
def on_files(files, config):
  """Adds README.md as index.md, and notebooks/."""
  readme = (ROOT / "README.md").read_text(encoding="utf-8")
  files.append(File.generated(config, "index.md", content=readme))
  for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
    name = path.relative_to(ROOT).as_posix()
    place = str(ROOT), config.site_dir, config.use_directory_urls
    files.append(File(name, *place))
  return files


def on_page_markdown(markdown, page, config, files):
  """Turns links of the repository into links of the site."""
  folder = "" if page.file.src_uri == "index.md" else "docs"

  def moved(match):
    target, hash_, anchor = match[1].partition("#")
    if not target:
      return match[1]
    path = (ROOT / folder / target).resolve().relative_to(ROOT).as_posix()
    uri = "index.md" if path == "README.md" else path.removeprefix("docs/")
    if files.get_file_from_path(uri):
      return f"{uri}{hash_}{anchor}"
    return f"{SOURCE}{path}{hash_}{anchor}"

  return LINK.sub(moved, markdown)
