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
from report.run import Kind, Run, duration, number, plural

_CHECKOUT = Path(__file__).resolve().parents[1]


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
  listed = f" ({'; '.join(counts)}){_state(runs)}" if runs else ""
  return (
    f"{plural(len(runs), 'run')}{listed}. Made {now:%Y-%m-%d %H:%M} UTC by"
    f" nam-jax {version.__version__}."
  )


def _state(runs):
  finished = sum(run.finished for run in runs)
  if finished == len(runs):
    return ", finished" if finished == 1 else ", all finished"
  if not finished:
    return ", not finished" if len(runs) == 1 else ", none finished"
  return f", {len(runs) - finished} of them not finished"


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
    folder = _from_checkout(run.folder)
    again = folder + ("-again" if run.finished else "")
    command = run.kind.command(f"{folder}/config.json", again, run.config)
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


def _from_checkout(folder):
  """The path of a folder for a command in the checkout."""
  path = folder.resolve()
  inside = path.is_relative_to(_CHECKOUT)
  return (path.relative_to(_CHECKOUT) if inside else path).as_posix()


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
