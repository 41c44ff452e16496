"""A strict reader of the page."""

from html.parser import HTMLParser

VOID = ("meta", "img", "br", "link", "input", "hr")


class Page(HTMLParser):
  """What is on the page; raises if an element is not closed properly.

  Attributes:
    elements: (tag, attributes), in order.
    text: all of it.
    rows: the texts of the cells of every table row.
    commands: the texts in fixed type: commands and configs.
  """

  def __init__(self, source: str):
    super().__init__()
    self.elements, self.text, self.rows, self.commands = [], "", [], []
    self._open = []
    self.feed(source)
    self.close()
    assert self._open == []

  def handle_starttag(self, tag, attrs):
    """Opens an element."""
    self.elements.append((tag, dict(attrs)))
    if tag not in VOID:
      self._open.append(tag)
    if tag == "tr":
      self.rows.append([])
    if tag in ("td", "th"):
      self.rows[-1].append("")
    if tag == "pre":
      self.commands.append("")

  def handle_endtag(self, tag):
    """Closes the element that was opened last."""
    assert self._open.pop() == tag

  def handle_data(self, data):
    """Collects text, including that of a cell."""
    self.text += data
    if {"td", "th"}.intersection(self._open):
      self.rows[-1][-1] += data
    if "pre" in self._open:
      self.commands[-1] += data

  def attributes(self, tag, name):
    """The values of an attribute of all such elements that have it."""
    return [a[name] for t, a in self.elements if t == tag and name in a]

  def row(self, *start):
    """The one row that starts with these cells."""
    (found,) = [row for row in self.rows if row[: len(start)] == list(start)]
    return found
