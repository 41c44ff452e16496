"""Runs of other scripts with the same engine: their curves alone."""

from collections.abc import Sequence
from typing import Any
from xml.etree.ElementTree import Element

from report.run import Kind, Run


def read(results: dict[str, Any]) -> None:
  """Nothing is known about these results."""
  raise ValueError("unknown keys" if results else "empty")


def show(runs: Sequence[Run]) -> list[Element]:
  """No table."""
  return []


KIND = Kind(
  "Other runs",
  frozenset(),
  frozenset(),
  lambda config_file, folder, config: "",
  read,
  show,
)
