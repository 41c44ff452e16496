"""The page shows what is in the folders, and is safe to open."""

import datetime
import re
import sys

import pytest

import nam_jax
import report
from report import find, html, page
from tests.report import folders
from tests.report.parsed import Page

NOW = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)
HOSTILE = "<script>alert(1)</script>\"' onerror=x $\\frac$ &amp; \ud800"


def build(root):
  return Page(page.build(root, find.find(root), NOW))


@pytest.fixture(scope="module")
def full(tmp_path_factory):
  """A page with every kind of run."""
  root = tmp_path_factory.mktemp("report") / "runs"
  folders.everything(root)
  return build(root)


def test_head_says_what_the_folder_holds(full):
  assert "7 runs (Algorithmic tasks: 3; Few-shot learning: 2;" in full.text
  assert "2 of them not finished. Made 2026-01-02 03:04 UTC" in full.text
  assert nam_jax.__version__ in full.text


def test_head_counts_in_words(tmp_path):
  folders.lra(tmp_path / "a")
  assert "1 run (Long Range Arena: 1), finished. Made" in build(tmp_path).text
  folders.lra(tmp_path / "b")
  assert "2 runs (Long Range Arena: 2), all finished." in build(tmp_path).text
  for name in "ab":
    (tmp_path / name / "results.json").unlink()
  assert ": 2), none finished. Made" in build(tmp_path).text
  (tmp_path / "b" / "metrics.jsonl").unlink()
  assert ": 1), not finished. Made" in build(tmp_path).text
  (tmp_path / "a" / "metrics.jsonl").unlink()
  assert "0 runs. Made" in build(tmp_path).text


def test_the_papers_columns_are_for_its_tasks(tmp_path):
  folders.algorithmic(tmp_path / "copy", 1.0, 0.9, 0.8, task="copy")
  page = build(tmp_path)
  (header,) = [row for row in page.rows if row[:2] == ["task", "model"]]
  assert "paper" not in " ".join(header)
  row = page.row("copy", "nam_tm")
  assert row[4:7] == ["100.0", "90.0", "80.0"]
  assert len(row) == len(header)
  assert "The paper (Table 1)" not in page.text
  folders.algorithmic(tmp_path / "palin", 1.0, 0.9, 0.8)
  page = build(tmp_path)
  assert page.row("copy", "nam_tm") == row
  assert page.row("palin", "nam_tm")[4:6] == ["100.0", "100.0"]
  assert "The paper (Table 1)" in page.text


def test_seeds_are_averaged_and_stand_beside_the_papers(full):
  row = full.row("palin", "nam_tm", "cpu", "0, 1")
  assert row[4:10] == ["100.0", "100.0", "80.0", "100.0", "70.0", "100.0"]
  assert row[10:] == ["20", "2", "120,800", "23.3 M", "2 min 5 s"]


def test_runs_with_different_configs_are_not_averaged(tmp_path):
  folders.algorithmic(tmp_path / "a", 1.0, 1.0, 1.0)
  folders.algorithmic(tmp_path / "b", 1.0, 0.5, 0.0, learning_rate=0.1)
  rows = [row for row in build(tmp_path).rows if row[0] == "palin"]
  assert sorted(row[6] for row in rows) == ["100.0", "50.0"]


def test_long_range_arena_has_accuracy_speed_and_the_papers(full):
  row = full.row("listops", "nam", "0")
  assert row[3:6] == ["21.50", "36.1", "22.50"]
  assert row[6:] == ["128", "20", "77,258", "1.5", "2.66", "1 h 1 min"]


def test_long_range_arena_has_curves_against_time(full, tmp_path):
  (alt,) = [a for a in full.attributes("img", "alt") if "minutes" in a]
  assert alt == "nam: 25.0 after 0.1 minutes"
  folders.lra(tmp_path / "short")
  folders.lra(tmp_path / "long", num_steps=40)
  alts = build(tmp_path).attributes("img", "alt")
  (alt,) = [a for a in alts if "minutes" in a]
  assert [line.partition(":")[0] for line in alt.split("; ")] == [
    "nam",
    "short",
  ]


def test_heads_stand_beside_the_papers_on_mini_imagenet_alone(full, tmp_path):
  row = full.row("nam")
  assert row[1] == "36.37 \u00b10.25"
  assert row[5:] == ["cosine_tuned -0.10 \u00b10.03", "18,627", "9.0 s"]
  assert full.row("paper, NAM, ResNet")[1:4] == ["52.88", "56.11", "79.55"]
  folders.fewshot(tmp_path / "glyphs", "glyphs")
  assert "paper, NAM" not in build(tmp_path).text


def test_benchmark_shows_goals_and_times(full):
  name = "time of plain scan / memory, forward, S=64"
  assert full.row(name)[1:] == ["2.00", "at least 0.9", "met"]
  row = full.row("causal", "forward", "memory_chunked")
  assert row[3:] == ["64", "125.00", "1.00", "3.5", "1.000"]
  assert "torch loop, forward, 64: it is too slow" in full.text


def test_unfinished_runs_are_shown_as_such_with_curve_and_command(full):
  assert full.row("running")[1:] == ["20 of 80", "1", "4.0 s"]
  assert full.row("started/nam-1shot")[1] == "20 of 40"
  alts = full.attributes("img", "alt")
  assert "running (not finished): 75 after 20 updates" in alts
  assert "runs/running/config.json" in full.text
  assert "to continue the run" in full.text


def test_pictures_versions_and_configs_are_in_the_page(full):
  captions = [a for a in full.attributes("img", "alt") if "by the number" in a]
  assert len(captions) == 2
  assert "python 3.11, jax 0.10" in full.text
  assert '"curriculum_start": 10' in full.text


def test_page_is_closed_escaped_and_loads_nothing(tmp_path):
  strange = tmp_path / 'a <b> & "c" $x$ $\\frac'
  folders.everything(tmp_path)
  folders.algorithmic(strange, 1.0, 1.0, 1.0, task=HOSTILE, model=HOSTILE)
  folders.write(tmp_path / "foreign", results={HOSTILE: HOSTILE})
  source = page.build(tmp_path, find.find(tmp_path), NOW)
  found = Page(source)
  assert source.isascii()
  tags = {tag for tag, _ in found.elements}
  assert not tags & {"script", "link", "iframe", "object", "base", "form"}
  names = {name for _, attributes in found.elements for name in attributes}
  assert names <= {
    *("lang", "charset", "name", "content", "id", "class", "role", "tabindex"),
    *("aria-label", "scope", "href", "src", "alt", "type"),
  }
  sources = found.attributes("img", "src")
  assert len(sources) > 10
  assert all(s.startswith("data:image/png;base64,") for s in sources)
  assert len(found.attributes("img", "alt")) == len(sources)
  assert not re.search(r"url\(|@import|https?:", source)
  assert "alert(1)" in found.text


def test_every_link_leads_to_one_place_in_the_page(full):
  ids = [a["id"] for _, a in full.elements if "id" in a]
  assert len(set(ids)) == len(ids)
  links = full.attributes("a", "href")
  assert len(links) > 10
  assert {link[1:] for link in links} <= set(ids)


def test_without_matplotlib_only_what_is_drawn_here_is_missing(
  tmp_path, monkeypatch
):
  folders.algorithmic(tmp_path / "run", 1.0, 1.0, 1.0)
  monkeypatch.setitem(sys.modules, "report.drawing", None)
  monkeypatch.delattr(report, "drawing", raising=False)
  found = build(tmp_path)
  assert len(found.attributes("img", "src")) == 1
  assert "pip install matplotlib" in found.text


def test_only_a_wide_picture_can_be_enlarged():
  for width, count in ((200, 0), (1200, 1)):
    png = b"\x89PNG\r\n\x1a\n" + bytes(8) + width.to_bytes(4) + bytes(9)
    page = Page(html.document("x", html.picture(png, "caption", "alt")))
    assert page.attributes("input", "type") == ["checkbox"] * count
