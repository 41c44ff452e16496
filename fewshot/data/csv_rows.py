"""Small tables in .csv files."""

import csv
import pathlib
from collections.abc import Iterator

from data_files import disk
from data_files.errors import DataError


def rows(
  path: pathlib.Path, header: tuple[str, ...]
) -> Iterator[tuple[str, list[str]]]:
  """Yields "file, line n" and the fields of each line after the header."""
  seen = False
  for where, line in disk.lines(path):
    if not line.strip():
      continue
    try:
      (fields,) = csv.reader([line.decode("utf-8-sig")], strict=True)
    except (ValueError, csv.Error) as error:
      raise DataError(f"{where}: not a line of CSV: {error}") from error
    fields = [field.strip() for field in fields]
    if not seen and tuple(fields) != header:
      raise DataError(f"{where}: expected the header {','.join(header)}")
    if len(fields) != len(header) or not all(fields):
      raise DataError(f"{where}: expected {','.join(header)}, got {line!r:.60}")
    if seen:
      yield where, fields
    seen = True
