"""README and docs tell the truth: their code and commands run.

A page is run from top to bottom in an empty folder, like a notebook: a block
may use what an earlier command wrote to runs/. `page_commands` says how far the
commands go.
"""

import configparser
import contextlib
import glob
import re
import subprocess
import sys

import jax
import pytest

from algorithmic.tasks import registry as tasks
from nam_jax.models import attentions
from nam_jax.models import registry as models
from tests import (
  page_commands,
  page_data,
  pages,
  project_tree,
)

# ml_collections loads config files in a way that Python 3.11 warns of.
pytestmark = pytest.mark.filterwarnings("ignore:the load_module")

ROOT = project_tree.ROOT
PAGES = pages.PAGES
REGISTRIES = ((tasks, "TASKS"), (models, "CORES"), (attentions, "KINDS"))
PIP = re.compile(r"install (?:-e )?\.(?:\[([\w,]+)\])?(?: -c (\S+))?")


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """An empty folder in which commands find the configs."""
  (tmp_path / "configs").symlink_to(ROOT / "configs")
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
  for owner, name in REGISTRIES:  # which blocks add to
    monkeypatch.setattr(owner, name, dict(getattr(owner, name)))
  with page_commands.shortened():
    yield tmp_path
  for name in [n for n in sys.modules if n.startswith("lra_benchmarks")]:
    del sys.modules[name]  # of a checkout that is gone


def run_python(page, block):
  """Runs a block as a user would; errors point at the line of the page."""
  code = "\n" * (block.line - 1) + block.code
  standard = jax.numpy_dtype_promotion("standard")
  started = contextlib.suppress(page_commands.Started)
  with standard, jax.numpy_rank_promotion("allow"), started:
    exec(compile(code, page, "exec"), {"__name__": "page"})


def run_make(arguments):
  """Dry-runs make."""
  command = ["make", "-n", f"PYTHON={sys.executable}", *arguments]
  done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr


def check_pip(arguments):
  """The extras and files that pip would need are there."""
  match = PIP.fullmatch(" ".join(arguments))
  assert match, arguments
  setup = configparser.ConfigParser()
  setup.read(ROOT / "setup.cfg")
  extras = set((match[1] or "").split(",")) - {""}
  assert extras <= set(setup["options.extras_require"])
  assert not match[2] or (ROOT / match[2]).exists()


def run_shell(page, block, folder):
  """Runs the commands in a block, each in its own way.

  Environment variables are ignored: tests/training starts processes that set
  them.
  """
  for command in pages.commands(block.code):
    print(f"{page}:{block.line}: {' '.join(command.words)}", flush=True)
    filled = [page_data.fill(word, folder) for word in command.words]
    program, *words = [w for word in filled for w in glob.glob(word) or [word]]
    if program == "make":
      run_make(words)
    elif program == "pip":
      check_pip(words)
    elif program == "python":
      page_commands.run(words)
    else:
      pytest.fail(f"no way to run {program}")


def run_page(page, text, folder):
  """Runs every block of a page, in turn."""
  for block in pages.blocks(text):
    if block.language == "python":
      run_python(page, block)
    elif block.language == "sh":
      run_shell(page, block, folder)
    else:
      known = block.language in pages.LANGUAGES
      assert known, f"{page}:{block.line}: what is this?"


def test_what_changes_bits_is_said_where_the_same_numbers_are_promised():
  promise = re.compile(r"same\s+numbers(?! to Weights)")
  parts = [
    " ".join(part.split())
    for text in PAGES.values()
    for part in re.split(r"\n\n|\n\|", text)
    if promise.search(part)
  ]
  assert len(parts) >= 3
  for part in parts:
    assert "as many cores and the same version of JAX" in part


def test_the_pages_say_what_runs_code():
  text = " ".join(" ".join(PAGES.values()).split())
  assert "`--config` is a Python program and runs with your rights" in text


@pytest.mark.parametrize("page", PAGES)
def test_all_code_and_all_commands_of_a_page_run(page, folder):
  run_page(page, PAGES[page], folder)


@pytest.mark.parametrize(
  ("text", "error"),
  [
    ("```\nx = 1\n```\n", AssertionError),
    ("```bash\nls\n```\n", AssertionError),
    ("```sh\nls\n```\n", pytest.fail.Exception),
    ("```sh\npython unknown.py\n```\n", LookupError),
    ("Run `python -m report.unknown`.\n", LookupError),
    ("```sh\npython train_lra.py --data_dir=nowhere\n```\n", RuntimeError),
    ("```sh\npython train_algorithmic.py --sedd=1\n```\n", RuntimeError),
    ("```sh\nmake unknown\n```\n", AssertionError),
    ("Say `make unknown`.\n", AssertionError),
    ("```sh\npip install '.[unknown]'\n```\n", AssertionError),
    ("```sh\nA=1 python -m algorithmic.show unknown\n```\n", RuntimeError),
    ("```python\nassert False\n```\n", AssertionError),
  ],
)
def test_what_does_not_run_is_found(text, error, folder):
  with pytest.raises(error):
    run_page("page.md", text, folder)


def test_the_readme_names_the_commands_to_begin_with():
  words = [
    command.words
    for block in pages.blocks(PAGES["README.md"])
    if block.language == "sh"
    for command in pages.commands(block.code)
  ]
  assert {("make", "train"), ("make", "test")} <= set(words)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
  assert dead_links(page, PAGES[page]) == []


def anchors_of(path):
  return pages.anchors(path.read_text()) if path.is_file() else set()


def dead_links(page, text):
  """Links to files, images or headings that do not exist."""
  dead = []
  for link in pages.links(text):
    if link.startswith("https://"):
      continue
    target, _, anchor = link.partition("#")
    path = (ROOT / page).parent / target if target else ROOT / page
    known = path.exists() and not anchor
    if not known and anchor not in anchors_of(path):
      dead.append(link)
  return dead


def test_dead_links_are_found():
  text = "[a](README.md) ![b](docs/no.png) [c](#no) [d](docs/api.md#no)"
  assert dead_links("README.md", text) == [
    "docs/no.png",
    "#no",
    "docs/api.md#no",
  ]


def test_every_page_is_reached_from_the_readme():
  linked = {link.partition("#")[0] for link in pages.links(PAGES["README.md"])}
  assert set(PAGES) - {"README.md"} <= linked
