"""Puts the page together."""

import datetime
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

from nam_jax import version
from report import html, pictures
from report.find import Found
from report.html import element
from report.run import Kind, Run, duration, number


def build(root: Path, found: Found, now: datetime.datetime) -> str:
  """The page about what was found in root."""
  kinds = sorted({run.kind.title: run.kind for run in found.runs}.items())
  kinds = [kind for _, kind in kinds]
  title = f"Report on {root}"
  content = [
    element("h1", title),
    element("p", _summary(kinds, found.runs, now)),
    *_problems(found.problems),
    _contents(kinds, found.runs),
  ]
  for kind in kinds:
    runs = [run for run in found.runs if run.kind is kind]
    content.append(_section(kind, runs, f"kind-{kinds.index(kind)}"))
  content.append(_environment(found.runs))
  return html.document(title, element("main", *content))


def _summary(kinds, runs, now):
  counts = [
    f"{kind.title}: {sum(run.kind is kind for run in runs)}" for kind in kinds
  ]
  unfinished = sum(not run.finished for run in runs)
  return (
    f"{_plural(len(runs), 'run')} ({'; '.join(counts) or 'none'}),"
    f" {unfinished or 'none'} of them not finished. Made"
    f" {now:%Y-%m-%d %H:%M} UTC by nam-jax {version.__version__}."
  )


def _plural(count, noun):
  return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _problems(problems) -> Iterator[Element]:
  if problems:
    lines = [element("li", problem) for problem in problems]
    heading = element("h2", "Files that could not be used", id="problems")
    yield element("section", heading, element("ul", *lines), class_="warn")


def _contents(kinds, runs):
  items = []
  for kind in kinds:
    entries = [
      element("li", html.links([(run.name, run.anchor)]), _mark(run))
      for run in runs
      if run.kind is kind
    ]
    title = html.links([(kind.title, f"kind-{kinds.index(kind)}")])
    items.append(element("li", title, element("ul", *entries)))
  items.append(element("li", html.links([("Environment", "environment")])))
  nav = element("nav", element("h2", "Contents"), element("ul", *items))
  nav.set("aria-label", "Contents")
  return nav


def _section(kind: Kind, runs: Sequence[Run], anchor: str) -> Element:
  known = [run for run in runs if run.facts is not None]
  content = [element("h2", kind.title, id=anchor)]
  if known:
    content += kind.show(known)
  content += _unfinished([run for run in runs if not run.finished])
  if curves := pictures.learning_curves(runs):
    content += [element("h3", "Learning curves"), *curves]
  content += [_article(run) for run in runs]
  return element("section", *content)


def _unfinished(runs) -> Iterator[Element]:
  rows = [
    [
      html.links([(f"{run.name}/{stage}".rstrip("/"), run.anchor)]),
      curve.steps(),
      number(curve.last("loss"), ".4g"),
      duration(curve.last("seconds")),
    ]
    for run in runs
    for stage, curve in run.curves.items()
  ]
  if rows:
    header = ("run", "updates", "last loss", "time so far")
    yield html.table("Not finished", header, rows, texts=1)


def _article(run):
  """The part of one run: pictures, command, config."""
  content = [
    element("h3", run.name, _mark(run), id=run.anchor),
    *pictures.left_behind(run),
  ]
  if run.config:
    file = (run.folder / "config.json").as_posix()
    folder = run.folder.as_posix() + ("-again" if run.finished else "")
    command = run.kind.command(file, folder, run.config)
  else:
    command = "" if run.curves else run.kind.command("", "", {})
  if command:
    verb = "repeat the run" if run.finished else "continue the run"
    content += [
      element("p", f"From the checkout, to {verb}:"),
      element("pre", command),
    ]
  if run.config:
    text = json.dumps(run.config, indent=2)
    content.append(html.details("config.json", element("pre", text)))
  return element("article", *content)


def _mark(run):
  return element("span", "" if run.finished else " not finished", class_="open")


def _environment(runs):
  """Each distinct set of versions, with the runs that have it."""
  groups: dict[str, list[Run]] = {}
  for run in runs:
    text = ", ".join(f"{name} {value}" for name, value in run.versions.items())
    groups.setdefault(text or "not recorded", []).append(run)
  rows = [
    [text, html.links([(run.name, run.anchor) for run in group])]
    for text, group in groups.items()
  ]
  table = html.table("Versions", ("what", "runs"), rows, texts=2)
  table.set("class", "wrap")
  heading = element("h2", "Environment", id="environment")
  return element("section", heading, table)
