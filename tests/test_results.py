"""The numbers of README and docs are those of docs/results.json."""

import re

import pytest

from docs import tables
from tests import pages

TABLES = tables.load()
USED = re.compile(r"<!-- results: (\w+) -->")
BLOCK = re.compile(r"<!-- results: .*?<!-- end -->", re.DOTALL)
# Written in prose, these are measurements: 65.7, 12%, 41 ms, 400 MiB.
MEASURED = re.compile(
  r"(?<![\w.-])(\d+\.\d+(?![\w.])|\d+(?=%| ms| MiB| tokens a second))"
)
NOT_MEASURED = re.compile(r"https?://\S+|Python 3\.\d+|JAX 0\.\d+")


def strange_numbers(text):
  """Measurements in the prose of a page that results.json does not have."""
  known = set(re.findall(r"\d+(?:\.\d+)?", str(TABLES)))
  for pattern in (BLOCK, pages.FENCE, pages.SPAN, NOT_MEASURED):
    text = pattern.sub("", text)
  return [n for n in MEASURED.findall(text) if n not in known]


@pytest.mark.parametrize("page", pages.PAGES)
def test_tables_are_what_the_results_say(page):
  text = pages.PAGES[page]
  assert text == tables.render(text, TABLES), "run `make pages`"


@pytest.mark.parametrize("page", pages.PAGES)
def test_prose_has_no_number_of_its_own(page):
  assert strange_numbers(pages.PAGES[page]) == []


def test_every_result_is_shown_once():
  names = [n for text in pages.PAGES.values() for n in USED.findall(text)]
  assert sorted(names) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_every_number_says_where_it_comes_from(name):
  table = TABLES[name]
  known = {*table["columns"], *tables.PROVENANCE}
  for row in table["rows"]:
    assert all(tables.provenance(table, row).values())
    assert set(row) <= known
    assert "seeds" not in row or "seeds" in table["columns"]


def test_drift_is_found():
  page = "<!-- results: glyphs -->\n| 1 |\n<!-- end -->\n"
  assert tables.render(page, TABLES) != page
  assert strange_numbers("It took 12345 ms, 0.35 or 99.99 in `1.5.7`.") == [
    "12345",
    "99.99",
  ]
  with pytest.raises(KeyError):
    tables.render("<!-- results: unknown -->\n<!-- end -->", TABLES)
  with pytest.raises(KeyError):
    tables.cited(TABLES, "{paper.algorithmic.nam_tm.unknown}")
  row = {"columns": [], "rows": [{}]}
  with pytest.raises(KeyError):
    tables.provenance(row, {})
