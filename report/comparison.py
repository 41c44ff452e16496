"""A section with one table of runs next to the paper's numbers."""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from report import html, pictures
from report.run import Run, by_config


class Comparison(NamedTuple):
  """Shows runs that differ only in their seed as one row."""

  caption: str
  header: Sequence[str]
  texts: int  # columns of text, from the left
  note: str
  paper_note: str  # below a table with the paper's numbers
  papers_tasks: Collection[str]
  # Runs of one config -> the cells of their row.
  row: Callable[[Sequence[Run]], list[str | Element]]
  # Facts -> title -> (row, ours, the paper's), both in percent.
  numbers: Callable[[tuple], Mapping[str, tuple[str, float, float]]]

  def show(self, runs: Sequence[Run]) -> list[Element]:
    """The table, its note, and a picture of what the paper also reports."""
    groups = sorted(by_config(runs), key=lambda group: group[0].facts[:3])
    theirs, others = [], []
    for group in groups:
      is_theirs = group[0].facts.task in self.papers_tasks
      (theirs if is_theirs else others).append(self.row(group))
    panels = {}
    for run in sorted(runs, key=lambda run: run.facts[:3]):
      for title, (name, here, papers) in self.numbers(run.facts).items():
        ours, _ = panels.setdefault(title, {}).setdefault(name, ([], papers))
        ours.append(here)
    return [
      *self._tables(theirs, others),
      html.element("p", self.note, class_="note"),
      *pictures.comparison(panels),
    ]

  def _tables(self, theirs, others):
    """A table of the paper's tasks, and one of others without its columns."""
    if theirs:
      yield html.table(self.caption, self.header, theirs, self.texts)
      yield html.element("p", self.paper_note, class_="note")
    if others:
      kept = [not title.startswith("paper") for title in self.header]
      header, *rows = (
        list(itertools.compress(row, kept)) for row in (self.header, *others)
      )
      caption = self.caption + (", other tasks" if theirs else "")
      yield html.table(caption, header, rows, self.texts)
