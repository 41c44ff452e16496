"""The page's parts; the standard library closes and escapes everything."""

import base64
from collections.abc import Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

STYLE = """
:root { color-scheme: light dark; --line: #c8ccd0; --soft: #f3f5f7;
  --text: #1a1c1e; --page: #ffffff; --link: #005a8c; --warn: #a34700; }
@media (prefers-color-scheme: dark) { :root { --line: #4a4f55;
  --soft: #23272b; --text: #e6e8ea; --page: #16191c; --link: #7cc4f0;
  --warn: #ffb07a; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 72rem; color: var(--text);
  background: var(--page); font: 1rem/1.5 system-ui, sans-serif;
  overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.5rem; font-size: 1.3rem;
  border-bottom: 1px solid var(--line); } h3 { margin-top: 2rem;
  font-size: 1.05rem; }
a { color: var(--link); }
nav ul { padding-left: 1.2rem; margin: 0; }
.scroll { overflow-x: auto; border: 1px solid var(--line);
  border-radius: 6px; margin: 0.5rem 0; }
.scroll:focus-visible { outline: 2px solid var(--link); }
table { border-collapse: collapse; width: 100%; font-size: 0.85rem;
  font-variant-numeric: tabular-nums; overflow-wrap: normal; }
.caption { margin: 1.5rem 0 0.5rem; font-weight: 600; font-size: 0.9rem; }
th, td { padding: 0.35rem 0.5rem; text-align: left; vertical-align: top;
  border-top: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; } thead th { background: var(--soft);
  white-space: normal; overflow-wrap: normal; vertical-align: bottom; }
.n { text-align: right; } .wrap td, .wrap th { white-space: normal; }
.pictures { display: flex; flex-wrap: wrap; gap: 1rem; margin: 1rem 0; }
.pictures figure { flex: 0 1 22.5rem; margin: 0; }
figure { margin: 1rem 0; } figcaption { font-size: 0.9rem; }
img { display: block; max-width: 100%; height: auto; background: #ffffff;
  padding: 6px; border: 1px solid var(--line); border-radius: 6px; }
.view { overflow-x: auto; } figure:has(:checked) img { max-width: none; }
pre { overflow-x: auto; padding: 0.7rem; background: var(--soft);
  border-radius: 6px; font-size: 0.85rem; }
.note { font-size: 0.9rem; } .open { color: var(--warn); font-weight: 600; }
.warn { border: 2px solid var(--warn); border-radius: 6px;
  padding: 0 1rem; margin: 1rem 0; } .warn h2 { margin-top: 0.7rem; }
summary { cursor: pointer; }
"""
# Pixels; the letters of wider pictures are small on a phone.
_WIDE = 560


def element(tag: str, *content: str | Element, **attributes: str) -> Element:
  """An element; `class_` is the attribute class."""
  attributes = {n.strip("_"): printable(v) for n, v in attributes.items()}
  node = Element(tag, attributes)
  for part in content:
    if isinstance(part, Element):
      node.append(part)
    elif len(node):
      node[-1].tail = (node[-1].tail or "") + printable(part)
    else:
      node.text = (node.text or "") + printable(part)
  return node


def printable(text: str) -> str:
  """Text that every page and picture can show."""
  return "".join(
    character
    if character.isprintable() or character in "\n\t"
    else ascii(character)[1:-1]
    for character in text
  )


def table(
  caption: str,
  header: Sequence[str],
  rows: Sequence[Sequence[str | Element]],
  texts: int,
) -> Element:
  """A table in a box that scrolls.

  Args:
    caption: text above the table.
    header: titles of the columns.
    rows: cells; the first of each names its row.
    texts: how many columns, from the left, are text; the rest are numbers.
  """
  aligned = [{} if i < texts else {"class": "n"} for i in range(len(header))]
  body = element("tbody")
  for row in rows:
    tags = ["th", *["td"] * (len(row) - 1)]
    cells = [
      element(tag, cell, **style)
      for tag, cell, style in zip(tags, row, aligned, strict=True)
    ]
    cells[0].set("scope", "row")
    body.append(element("tr", *cells))
  titles = [
    element("th", title, scope="col", **style)
    for title, style in zip(header, aligned, strict=True)
  ]
  content = element(
    "table",
    element("thead", element("tr", *titles)),
    body,
  )
  box = element("div", content, class_="scroll", role="region", tabindex="0")
  box.set("aria-label", caption)
  return element("div", element("p", caption, class_="caption"), box)


def picture(png: bytes, caption: str, alt: str) -> Element:
  """A picture that is part of the page; a wide one can be seen in full size."""
  source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
  content = [element("img", src=source, alt=alt)]
  if int.from_bytes(png[16:20]) > _WIDE:
    zoom = element("label", element("input", type="checkbox"), " full size")
    view = element("div", *content, class_="view", role="region", tabindex="0")
    view.set("aria-label", caption)
    content = [zoom, view]
  return element("figure", *content, element("figcaption", caption))


def links(targets: Sequence[tuple[str, str]]) -> Element:
  """Links within the page, each a text and an anchor."""
  parts = []
  for text, anchor in targets:
    parts += [", ", element("a", text, href=f"#{anchor}")]
  return element("span", *parts[1:])


def details(summary: str, *content: str | Element) -> Element:
  """Content that is folded away until clicked."""
  return element("details", element("summary", summary), *content)


def document(title: str, *content: str | Element) -> str:
  """The whole page, in ASCII."""
  head = element(
    "head",
    element("meta", charset="utf-8"),
    element(
      "meta", name="viewport", content="width=device-width, initial-scale=1"
    ),
    element("title", title),
    element("style", STYLE),
  )
  page = element("html", head, element("body", *content), lang="en")
  text = ElementTree.tostring(page, encoding="us-ascii", method="html")
  return f"<!DOCTYPE html>\n{text.decode()}\n"
