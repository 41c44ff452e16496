"""A section with one table of runs next to the paper's numbers."""

from collections.abc import Callable, Mapping, Sequence
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
  # Runs of one config -> the cells of their row.
  row: Callable[[Sequence[Run]], list[str | Element]]
  # Facts -> title -> (row, ours, the paper's), both in percent.
  numbers: Callable[[tuple], Mapping[str, tuple[str, float, float]]]

  def show(self, runs: Sequence[Run]) -> list[Element]:
    """The table, its note, and a picture of what the paper also reports."""
    groups = sorted(by_config(runs), key=lambda group: group[0].facts[:3])
    rows = [self.row(group) for group in groups]
    panels = {}
    for run in sorted(runs, key=lambda run: run.facts[:3]):
      for title, (name, here, papers) in self.numbers(run.facts).items():
        ours, _ = panels.setdefault(title, {}).setdefault(name, ([], papers))
        ours.append(here)
    return [
      html.table(self.caption, self.header, rows, self.texts),
      html.element("p", self.note, class_="note"),
      *pictures.comparison(panels),
    ]
