"""The documentation site builds without warnings and has every public name."""

import os
import re
import subprocess
import sys

import pytest

import nam_jax
from tests import project_tree

ROOT = project_tree.ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory):
  """The folder of the site."""
  folder = tmp_path_factory.mktemp("site")
  build = subprocess.run(
    [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-d", folder],
    cwd=ROOT,
    capture_output=True,
    text=True,
    env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
  )
  assert (build.returncode, build.stderr) == (0, "")
  return folder


def test_every_page_and_notebook_is_there(site):
  pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
  written = {path.parent.name for path in site.rglob("index.html")}
  assert {path.stem for path in pages} <= written
  assert "How the picture is made" in (site / "index.html").read_text()


def test_reference_has_every_public_name_and_its_words(site):
  text = (site / "api" / "index.html").read_text()
  names = set(re.findall(r'id="nam_jax\.(\w+)"', text))
  assert set(nam_jax.__all__) - {"__version__"} <= names
  assert "reading k afterwards returns v" in text


def test_links_of_the_repository_become_links_of_the_site(site):
  home = (site / "index.html").read_text()
  assert 'href="algorithmic/#longer-inputs"' in home
  assert 'href="notebooks/3_turing_machine/"' in home
  assert "/blob/main/CONTRIBUTING.md" in home
